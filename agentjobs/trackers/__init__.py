"""Where tickets go. One file a destination; each declares what is known about repeating a creation."""
