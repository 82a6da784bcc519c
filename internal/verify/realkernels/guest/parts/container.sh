# From its own namespaces, through the host's /proc.
life
mkdir -p $agent/hostproc
host() {
	exits $1 unshare -m -n sh -euc 'mount --make-rprivate /; mount --rbind /proc $1/hostproc; shift; exec nodeinit "$@" --host-proc $0/hostproc' $agent $agent "$2" $3
}
node >$agent/before
host 2 check "$flags"
host 0 apply "$flags"
host 0 apply "$flags"
silent '^  [a-z-]+ +changed'
host 0 uninstall ''
node >$agent/after
diff $agent/before $agent/after
