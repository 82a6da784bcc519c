# Root of a user namespace only: a denied operation is an error that names the capability,
# and every change is reverted.
node >$agent/before
exits 1 unshare -Urm nodeinit apply $flags --state-dir $agent/state
says "not the host's"
exits 1 unshare -Urm nodeinit apply $flags --state-dir $agent/state --here
says CAP_
unshare -Urm nodeinit uninstall --state-dir $agent/state
node >$agent/after
diff $agent/before $agent/after
exits 1 unshare -Urm nodeinit demo
