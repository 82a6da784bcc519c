# Root of a user namespace only: what it may not do is an error that names the
# capability, and all that was done is undone.
node >$agent/before
exits 1 unshare -Urm nodeinit apply $flags --state-dir $agent/state
says "not the host's"
exits 1 unshare -Urm nodeinit apply $flags --state-dir $agent/state --here
says CAP_
unshare -Urm nodeinit uninstall --state-dir $agent/state
node >$agent/after
diff $agent/before $agent/after
exits 1 unshare -Urm nodeinit demo
