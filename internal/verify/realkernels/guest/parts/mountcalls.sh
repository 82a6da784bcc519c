# As under a seccomp profile that allows only mount(2).
as=refuse
exits 0 refuse nodeinit demo
says 'Nothing is left'
life
