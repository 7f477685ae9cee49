#!/usr/bin/env bash
# deb.sh BINARY DIRECTORY [FILE...]: makes the Debian package of a built hob in DIRECTORY; FILEs go among its documentation.
#
# $HOB_CPU says what the binary was built for (x86-64-v3): the package refuses processors that cannot run it. $HOB_DEB_COMPRESSION is
# xz unless it is set otherwise; none is quick. $HOB_MAINTAINER is who answers for it, as 'Name <address>'.
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
# Debian wants a list of changes in a form of its own; ours lies beside it.
gzip -9n >"$doc/changelog.gz" <<END
hob ($version) unstable; urgency=medium

  * See CHANGELOG.md.gz.

 -- $maintainer  $(LC_ALL=C date -u -R -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}")
END

# The oldest C library with every symbol that the program uses; those of C++ and of GCC come from the same GCC as any.
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
# By length: how many blocks a file takes differs from one time to the next.
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
# Every build of the same files gives the same bytes where SOURCE_DATE_EPOCH is set.
dpkg-deb --root-owner-group "-Z${HOB_DEB_COMPRESSION:-xz}" --build "$root" "$package" >&2
echo "$package"
