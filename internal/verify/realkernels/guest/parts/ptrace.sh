# Opening the namespaces of a more privileged process needs CAP_SYS_PTRACE.
mkdir -p $agent/hostproc
exits 1 unshare -m sh -euc 'mount --make-rprivate /; mount --rbind /proc $0/hostproc; exec setpriv --bounding-set=-sys_ptrace --inh-caps=-sys_ptrace nodeinit mount-bpffs --host-proc $0/hostproc' $agent
says 'missing CAP_SYS_PTRACE'
