"""A trip that plays by itself inside an image: SMIL on one clock, without a script."""
