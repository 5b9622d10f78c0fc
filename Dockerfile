# One image for the API and the workers: `serve` (the default), `worker`, `migrate`.
FROM python:3.12-slim AS build
WORKDIR /src
COPY requirements.lock ./
RUN python -m venv /opt/forensic \
 && /opt/forensic/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY app app
COPY migrations migrations
# The build backend came with the lock: this step needs no network.
RUN /opt/forensic/bin/pip install --no-cache-dir --no-deps --no-index --no-build-isolation .

FROM python:3.12-slim
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/forensic forensic
COPY --from=build /opt/forensic /opt/forensic
ENV PATH=/opt/forensic/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    FORENSIC_HOST=0.0.0.0 \
    FORENSIC_DATA_DIR=/var/lib/forensic
USER 10001
WORKDIR /var/lib/forensic
VOLUME /var/lib/forensic
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
ENTRYPOINT ["forensic"]
CMD ["serve"]
