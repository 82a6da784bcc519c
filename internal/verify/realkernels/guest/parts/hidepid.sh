mount -o remount,hidepid=2 /proc
exits 0 nodeinit demo
says 'Nothing is left'
life
mount -o remount,hidepid=0 /proc
