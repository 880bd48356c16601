# shellcheck shell=bash
# The one list of system packages. Sourced by bootstrap.sh; not run on its own.
#
# One line per package: GROUP PACKAGE [COMMAND]. When a COMMAND is named and found in PATH, the
# package counts as present however it came there; else the package manager is asked.
#
#   build  compiling weft
#   demo   building the demonstration's network
#   test   what `make test` needs beside building: second decoders, tools the tests look through
# shellcheck disable=SC2034
packages='
build  ca-certificates
build  gcc             cc
build  libc6-dev
demo   iproute2        ip
test   ethtool         ethtool
test   iproute2        ip
test   openssl         openssl
test   procps          ps
test   tcpdump         tcpdump
test   tshark          tshark
'
