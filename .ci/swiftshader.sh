#!/bin/bash
# swiftshader.sh prints the path of the description of SwiftShader, a Vulkan driver
# that is software, as VK_DRIVER_FILES takes it. It is the second opinion beside
# Mesa's lavapipe. Where there is none yet, it is taken out of the package of
# Debian that ships it with a browser: two files, and nothing is installed. With
# --found it only looks, and fails where there is none.
set -euo pipefail
name=vk_swiftshader_icd.json
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/rayo-ci/swiftshader
for icd in /usr/lib/chromium/$name "$cache/$name"; do
	if [ -s "$icd" ]; then
		echo "$icd"
		exit
	fi
done
[ "${1-}" != --found ] || exit 1

if ! command -v apt-get >/dev/null || [ "$(uname -s)" != Linux ]; then
	echo "swiftshader.sh: this machine has no packages of Debian" >&2
	exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download -qq chromium-common >log 2>&1 || { apt-get update -qq && apt-get download -qq chromium-common >log 2>&1; } || { cat log >&2; exit 1; }
dpkg-deb --fsys-tarfile chromium-common_*.deb | tar -x ./usr/lib/chromium/libvk_swiftshader.so ./usr/lib/chromium/$name
mkdir -p "$cache"
mv usr/lib/chromium/libvk_swiftshader.so "$cache/"
mv usr/lib/chromium/$name "$cache/" # the last, so that what is found is whole
echo "$cache/$name"
