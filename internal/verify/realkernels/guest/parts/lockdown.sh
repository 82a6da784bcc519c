# As with lockdown=confidentiality.
grep -F '[confidentiality]' /sys/kernel/security/lockdown
exits 0 nodeinit demo
says 'Nothing is left'
life
