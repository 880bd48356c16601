//! Checked views of the headers that every architecture meets: Ethernet, 802.1Q, ARP, IPv4, IPv6, UDP, ICMPv6.
