# Precedes each part. If a part fails, its output is shown; sh runs with -eu.

agent=/tmp/agent
mkdir -p $agent/plugins
cat >$agent/plugins/demo-cni <<'PLUGIN'
#!/bin/sh
echo '{"cniVersion":"1.0.0","supportedVersions":["0.3.1","0.4.0","1.0.0"]}'
PLUGIN
cp $agent/plugins/demo-cni $agent/plugins/loopback
chmod 755 $agent/plugins/*
echo '{"cniVersion":"1.0.0","name":"demo","plugins":[{"type":"demo-cni"}]}' >$agent/demo.conflist
export DEMO_MTU=1500
flags="--plugins $agent/plugins --cni-conf $agent/demo.conflist --source env:DEMO_ --dest /tmp/config-map"

# exits STATUS COMMAND...: the command exits with this status; its output is in $agent/said.
exits() {
	want=$1 got=0
	shift
	echo "\$ $*"
	"$@" >$agent/said 2>&1 || got=$?
	cat $agent/said
	[ $got = $want ] || { echo "exit status $got, not $want"; exit 1; }
}

# says TEXT: the last command printed the text.
says() { grep -qF -e "$1" $agent/said || { echo "does not say: $1"; exit 1; }; }

silent() { ! grep -qE -e "$1" $agent/said || { echo "says: $1"; exit 1; }; }

# node prints what nodeinit could have changed; two locks stay, as the README says,
# and mount(8) has a directory of its own.
node() {
	awk '{ print $4, $5, $6 }' /proc/self/mountinfo | sort
	find /etc /opt /run /var/lib /var/run/ -xdev 2>/dev/null | grep -v -e /run/slipway.lock -e /run/xtables.lock -e /run/mount | sort
	for key in /proc/sys/net/ipv4/conf/*/rp_filter /proc/sys/net/ipv4/conf/*/forwarding /proc/sys/net/ipv6/conf/*/forwarding /proc/sys/kernel/unprivileged_bpf_disabled; do
		[ ! -r $key ] || echo "$key $(cat $key)"
	done
}

# life [FLAGS...]: check, apply, apply, check, uninstall; then the node is as before.
life() {
	node >$agent/before
	exits 2 $as nodeinit check $flags "$@"
	exits 0 $as nodeinit apply $flags "$@"
	exits 0 $as nodeinit apply $flags "$@"
	silent '^  [a-z-]+ +changed'
	exits 0 $as nodeinit check $flags "$@"
	exits 0 $as nodeinit uninstall "$@"
	node >$agent/after
	diff $agent/before $agent/after
}
as=
