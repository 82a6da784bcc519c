# As where a profile of seccomp knows mount(2) only.
as=refuse
exits 0 refuse nodeinit demo
says 'Nothing is left'
life
