# As with ipv6.disable=1.
[ ! -e /proc/sys/net/ipv6 ] || { echo 'there is IPv6'; exit 1; }
exits 0 nodeinit demo
says 'Nothing is left'
life
