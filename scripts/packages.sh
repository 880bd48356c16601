# shellcheck shell=bash
# The one list of system packages. Sourced by bootstrap.sh; not run on its own.
#
# One line per package: GROUP PACKAGE [COMMAND]. When a COMMAND is named and found in PATH, the
# package counts as present however it came there; else the package manager is asked.
#
#   bench  the peers that weft is measured beside
#   build  compiling weft, with the eBPF programs that it embeds
#   demo   building the demonstration's network
#   fuzz   libFuzzer is C++
#   test   what `make test` needs beside building: second decoders, tools the tests look through
# shellcheck disable=SC2034
packages='
bench  bird2           bird
bench  ethtool         ethtool
bench  frr             vtysh
bench  gobgpd          gobgpd
bench  iperf           iperf
bench  iproute2        ip
bench  iputils-ping    ping
bench  smcroute
bench  util-linux      chrt
build  ca-certificates
build  clang           clang
build  gcc             cc
build  libbpf-dev
build  libc6-dev
build  linux-libc-dev
demo   iproute2        ip
fuzz   g++             c++
test   bird2           bird
test   ethtool         ethtool
test   exabgp          exabgp
test   fish            fish
test   frr             vtysh
test   gobgpd          gobgpd
test   groff           groff
test   iproute2        ip
test   iputils-ping    ping
test   openssl         openssl
test   pmacct          pmbmpd
test   procps          ps
test   python3         python3
test   python3-prometheus-client
test   stayrtr         stayrtr
test   systemd         systemd-analyze
test   tcpdump         tcpdump
test   tshark          tshark
test   zsh             zsh
'

# Services that packages of the list would start at once and at every boot, a line per package: only
# the programs are needed, so bootstrap.sh leaves them off.
services='
bird2  bird.service
exabgp  exabgp.service
frr  frr.service
gobgpd  gobgpd.service
pmacct  nfacctd.service pmacctd.service sfacctd.service uacctd.service
smcroute  smcroute.service smcroute-helper.service
stayrtr  stayrtr.service
'
