# needs: python3 / python3
set -e
echo here > /dev/shm/name-$$ && cat /dev/shm/name-$$ && rm /dev/shm/name-$$
python3 -c '
from multiprocessing import shared_memory, Process, Semaphore
s = shared_memory.SharedMemory(create=True, size=8); s.buf[0] = 1
def work(name): t = shared_memory.SharedMemory(name); t.buf[0] += 41; t.close()
p = Process(target=work, args=(s.name,)); p.start(); p.join(); print(s.buf[0]); s.close(); s.unlink(); Semaphore(1).acquire()'
