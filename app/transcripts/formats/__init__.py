"""The vocabularies in which conversations are recorded, each brought into the one shape of ``transcripts.model``."""
