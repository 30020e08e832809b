package workers

// sysGetcpu is missing from package syscall.
const sysGetcpu = 309
