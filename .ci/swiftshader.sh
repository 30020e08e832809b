#!/bin/bash
# swiftshader.sh prints the path of the manifest of SwiftShader, a software Vulkan driver, for use
# in VK_DRIVER_FILES. Tests use it as a second driver beside Mesa's lavapipe. If SwiftShader is
# missing, the script extracts its two files from the Debian package of a browser that ships it, and
# installs nothing. With --found the script only searches, and fails if SwiftShader is missing.
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
	echo "swiftshader.sh: this machine is not a Linux with apt-get, so the script cannot get SwiftShader from a Debian package" >&2
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
