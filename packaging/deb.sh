#!/usr/bin/env bash
# deb.sh BINARY DIRECTORY [FILE...]: builds the Debian package of a hob binary in DIRECTORY; FILEs become part of its documentation.
#
# $HOB_CPU: the processor that the binary was built for (x86-64-v3); the package refuses older ones. $HOB_DEB_COMPRESSION: xz by
# default; none is fast. $HOB_MAINTAINER: the maintainer, as 'Name <address>'.
set -euo pipefail
umask 022

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
binary=$1 out=$2
shift 2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
doc=$root/usr/share/doc/hob

"$here/stage.sh" "$binary" "$root/usr"
install -D -m 0644 "$here/config.toml" "$root/etc/hob/config.toml"
install -D -m 0644 "$here/debian/copyright" "$doc/copyright"
for file in "$here/../CHANGELOG.md" "$@"; do gzip -9nc "$file" >"$doc/$(basename "$file").gz"; done

version=$("$root/usr/bin/hob" --version | cut -d ' ' -f 2)
architecture=$(dpkg --print-architecture)
maintainer=${HOB_MAINTAINER:-The Hob project <hob@localhost>}
# Debian requires a changelog in its own format; CHANGELOG.md is included beside it.
gzip -9n >"$doc/changelog.gz" <<END
hob ($version) unstable; urgency=medium

  * See CHANGELOG.md.gz.

 -- $maintainer  $(LC_ALL=C date -u -R -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}")
END

# The oldest C library that has every symbol that the program uses.
newest() { objdump -T "$root/usr/bin/hob" | grep -o "$1_[0-9.]*" | sed "s/$1_//" | sort -Vu | tail -n 1; }
depends="libc6 (>= $(newest GLIBC)), libgcc-s1"
case $(objdump -p "$root/usr/bin/hob") in
*NEEDED*libstdc++*) depends="$depends, libstdc++6 (>= 11)" ;;
esac

case ${HOB_CPU:-native} in
x86-64-v2) flags='sse4_2 popcnt' ;;
x86-64-v3) flags='avx2 bmi2 fma' ;;
x86-64-v4) flags='avx512f avx512bw avx512vl' ;;
*) flags='' ;;
esac

mkdir -p "$root/DEBIAN" "$out"
# By apparent size, because the number of disk blocks differs between builds.
size=$(du -sk --apparent-size "$root" | cut -f 1)
fill() {
    sed -e "s/@VERSION@/$version/" -e "s/@MAINTAINER@/$maintainer/" -e "s/@ARCHITECTURE@/$architecture/" -e "s/@SIZE@/$size/" -e "s/@DEPENDS@/$depends/" \
        -e "s/@CPU_FLAGS@/$flags/g" "$1"
}
fill "$here/debian/control.in" >"$root/DEBIAN/control"
if [ -n "$flags" ]; then
    fill "$here/debian/preinst.in" >"$root/DEBIAN/preinst"
    chmod 0755 "$root/DEBIAN/preinst"
fi
for script in postinst prerm postrm; do install -m 0755 "$here/debian/$script" "$root/DEBIAN/$script"; done
echo /etc/hob/config.toml >"$root/DEBIAN/conffiles"
(cd "$root" && find usr etc -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"

package=$out/hob_${version}_$architecture.deb
# With SOURCE_DATE_EPOCH set, the same files always give the same package.
dpkg-deb --root-owner-group "-Z${HOB_DEB_COMPRESSION:-xz}" --build "$root" "$package" >&2
echo "$package"
