"""The `Intake` port's adapter: bytes in, admitted conversations out; and stored ones in, their presentation out."""
