# One static program and nothing else. A clone and Docker 23 or later (BuildKit), Podman or buildah are enough:
#
#     docker build -t petstore .
#     docker run -p 127.0.0.1:8080:8080 -v petstore:/data --read-only --tmpfs /tmp:mode=1777 \
#         --stop-timeout 30 petstore
#
# Without a terminal no API key is printed. Make one with a command, which works on the same volume:
#
#     docker run --rm -v petstore:/data --read-only petstore key add ci
#
# After the first start, -e PETSTORE_REQUIRE_DATABASE=true keeps a wrong volume from becoming an empty database. The image
# names no volume: without -v, --read-only makes the start fail, rather than keep the pets in a volume without a name.
#
# From a release instead, without a compiler:
#
#     scripts/release
#     docker build -t petstore --target released -f Dockerfile target/dist/image

# Alpine, because its Rust links musl into the program, as a release does. glibc needs files of its own to look up names.
ARG RUST=docker.io/library/rust:1.95-alpine
ARG BASE=scratch

FROM ${BASE} AS runtime
ARG VERSION=1.0.0
LABEL org.opencontainers.image.title=petstore \
    org.opencontainers.image.description="A pet store inventory service over HTTP" \
    org.opencontainers.image.licenses=MIT \
    org.opencontainers.image.version=${VERSION}
USER 65532:65532
# All addresses inside the container; -p chooses the ones of the machine. Name a proxy in another container with
# PETSTORE_TRUSTED_PROXY. To change the address, set this variable: the health check reads it too.
ENV PETSTORE_LISTEN=0.0.0.0:8080 PETSTORE_DATABASE=/data/petstore.db
# After a crowd, the allocator returns the memory with later requests, since a container may be small.
ENV MIMALLOC_PURGE_DELAY=10
EXPOSE 8080
STOPSIGNAL SIGTERM
# Podman keeps this only with --format docker.
HEALTHCHECK --interval=10s --timeout=10s --start-period=30s CMD ["/petstore", "healthcheck"]
ENTRYPOINT ["/petstore"]

# The program of a release.
FROM runtime AS released
ARG TARGETARCH
COPY ${TARGETARCH}/petstore /petstore
# /data, /backups and /tmp, for the user of the service.
COPY --chown=65532:65532 folders/ /

FROM ${RUST} AS compiled
ARG PROFILE=release
WORKDIR /source
COPY . .
RUN CARGO_PROFILE_RELEASE_STRIP=symbols cargo install --locked --no-track --profile "$PROFILE" --path . --root /out
RUN mkdir -p /folders/data /folders/backups /folders/tmp

FROM runtime
COPY --from=compiled /out/bin/petstore /petstore
COPY --from=compiled --chown=65532:65532 /folders/ /
