package workers

const sysGetcpu = 168
