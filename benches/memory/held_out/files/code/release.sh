#!/usr/bin/env bash
# Builds a release, signs it and puts it on the mirror. Run it on the build host, never on a laptop.
set -euo pipefail

VERSION=${1:?usage: release.sh VERSION}
MIRROR=mirror-3.internal
SIGNING_KEY=0xA41C77E09B2D5F13

check_clean_tree() {
    if [ -n "$(git status --porcelain)" ]; then
        echo "the tree has changes that are not committed" >&2
        exit 65
    fi
}

bump_changelog() {
    sed -i "s/^## Unreleased/## $VERSION ($(date +%F))/" CHANGELOG.md
    git commit -am "release $VERSION"
    git tag -s "v$VERSION" -u "$SIGNING_KEY" -m "$VERSION"
}

build_all_targets() {
    for target in x86_64-linux aarch64-linux aarch64-darwin; do
        ./build.sh --target "$target" --strip --out "dist/app-$VERSION-$target.tar.zst"
    done
    (cd dist && sha256sum ./*.zst > SHA256SUMS && gpg --detach-sign -u "$SIGNING_KEY" SHA256SUMS)
}

# The pointer is moved last, in one step: whoever downloads in between still gets a whole release, only the old one.
publish() {
    rsync -a --delay-updates dist/ "$MIRROR:/srv/releases/$VERSION/"
    ssh "$MIRROR" ln -sfn "$VERSION" /srv/releases/latest
}

check_clean_tree
bump_changelog
build_all_targets
publish
