#!/usr/bin/env bash
# deb.sh TREE DIRECTORY [FILE...]: builds the Debian package in DIRECTORY; FILEs become part of its documentation.
#
# TREE is the output of stage.sh, or a hob binary, from which stage.sh makes one.
# $HOB_DEB_COMPRESSION: xz by default; none is fast. $HOB_MAINTAINER: the maintainer, as 'Name <address>'.
set -euo pipefail
umask 022

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=packaging/target.sh
. "$here/target.sh"
tree=$1 out=$2
shift 2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
doc=$root/usr/share/doc/hob

if [ -d "$tree" ]; then
    mkdir -p "$root"
    cp -a "$tree" "$root/usr"
else
    "$here/stage.sh" "$tree" "$root/usr"
fi
mark_installed_by "$root/usr" deb
install -D -m 0644 "$here/config.toml" "$root/etc/hob/config.toml"
install -D -m 0644 "$here/debian/copyright" "$doc/copyright"
for file in "$here/../CHANGELOG.md" "$@"; do gzip -9nc "$file" >"$doc/$(basename "$file").gz"; done

version=$(version_of "$root/usr/bin/hob")
maintainer=${HOB_MAINTAINER:-The Hob project <hob@localhost>}
# Debian requires a changelog in its own format; CHANGELOG.md is included beside it.
gzip -9n >"$doc/changelog.gz" <<END
hob ($version) unstable; urgency=medium

  * See CHANGELOG.md.gz.

 -- $maintainer  $(LC_ALL=C date -u -R -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}")
END

mapfile -t binaries < <(binaries_in "$root/usr")
# The oldest C library that has every symbol that they use.
depends="libc6 (>= $(newest_symbol GLIBC "${binaries[@]}")), libgcc-s1"
needed=$("${tools}objdump" -p "${binaries[@]}" | grep NEEDED)
case $needed in *libstdc++*) depends="$depends, libstdc++6 (>= 11)" ;; esac
case $needed in *libgomp*) depends="$depends, libgomp1" ;; esac

mkdir -p "$root/DEBIAN" "$out"
# By apparent size, because the number of disk blocks differs between builds.
size=$(du -sk --apparent-size "$root" | cut -f 1)
fill() {
    sed -e "s/@VERSION@/$version/" -e "s/@MAINTAINER@/$maintainer/" -e "s/@ARCHITECTURE@/$debian_architecture/" -e "s/@SIZE@/$size/" -e "s/@DEPENDS@/$depends/" "$1"
}
fill "$here/debian/control.in" >"$root/DEBIAN/control"
for script in postinst prerm postrm; do install -m 0755 "$here/debian/$script" "$root/DEBIAN/$script"; done
echo /etc/hob/config.toml >"$root/DEBIAN/conffiles"
(cd "$root" && find usr etc -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"

package=$out/hob_${version}_$debian_architecture.deb
# With SOURCE_DATE_EPOCH set, the same files always give the same package.
dpkg-deb --root-owner-group "-Z${HOB_DEB_COMPRESSION:-xz}" --build "$root" "$package" >&2
echo "$package"
