# On a machine with cgroup v1 only, the error names what the demo needs.
if ! grep -q ' - cgroup2 ' /proc/self/mountinfo; then
	exits 1 nodeinit demo
	says 'mount -t cgroup2 none /mnt'
	mount -t cgroup2 none /mnt
	exits 0 nodeinit demo
	umount /mnt
else
	exits 0 nodeinit demo
fi
says 'Nothing is left'
