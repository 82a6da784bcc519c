life
