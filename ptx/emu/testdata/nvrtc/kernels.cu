// Kernels in CUDA C whose PTX, as NVRTC makes it, the tests of package emu run.
// Run gen.py after a change. Each has a twin in Go in nvrtc_test.go.
#include <cuda_fp16.h>
#include <cuda_bf16.h>

typedef unsigned int u32;
typedef unsigned long long u64;

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

// Functions of the library of floats; sine reduces large arguments by a table in
// constant memory.

extern "C" __global__ void exp_f32(float *y, const float *x, int n) {
	int i = INDEX;
	if (i < n) y[i] = expf(x[i]);
}

extern "C" __global__ void sin_f32(float *y, const float *x, int n) {
	int i = INDEX;
	if (i < n) y[i] = sinf(x[i]);
}

extern "C" __global__ void pow_f32(float *y, const float *x, const float *p, int n) {
	int i = INDEX;
	if (i < n) y[i] = powf(x[i], p[i]);
}

extern "C" __global__ void more_f32(float *y, const float *x, int n) {
	int i = INDEX;
	if (i >= n) return;
	float v = x[i];
	switch (i % 8) {
	case 0: v = tanhf(v); break;
	case 1: v = erff(v); break;
	case 2: v = log1pf(fabsf(v)); break;
	case 3: v = cbrtf(v); break;
	case 4: v = atan2f(v, 2); break;
	case 5: v = hypotf(v, 3); break;
	case 6: v = fmodf(v, 0.75f); break;
	default: v = rintf(v) + truncf(v) + floorf(v) + ceilf(v) + __saturatef(v);
	}
	y[i] = v;
}

extern "C" __global__ void math_f64(double *y, const double *x, int n) {
	int i = INDEX;
	if (i >= n) return;
	double v = x[i];
	y[4 * i] = exp(v);
	y[4 * i + 1] = log(fabs(v) + 1) / sqrt(v * v + 0.5);
	y[4 * i + 2] = sin(v * 1e6) + atan2(v, 3.0);
	y[4 * i + 3] = fmod(v, 0.3) + pow(fabs(v), 1.7);
}

// Integers.

extern "C" __global__ void divide32(int *y, const int *a, const int *b, int n) {
	int i = INDEX;
	if (i >= n) return;
	y[4 * i] = a[i] / b[i];
	y[4 * i + 1] = a[i] % b[i];
	y[4 * i + 2] = (u32)a[i] / (u32)b[i];
	y[4 * i + 3] = (u32)a[i] % 1000003u;
}

extern "C" __global__ void divide64(long long *y, const long long *a, const long long *b, int n) {
	int i = INDEX;
	if (i >= n) return;
	y[4 * i] = a[i] / b[i];
	y[4 * i + 1] = a[i] % b[i];
	y[4 * i + 2] = (u64)a[i] / (u64)b[i];
	y[4 * i + 3] = (u64)a[i] % 1000000007ull;
}

extern "C" __global__ void multiply128(u64 *y, const u64 *a, const u64 *b, int n) {
	int i = INDEX;
	if (i >= n) return;
	unsigned __int128 v = (unsigned __int128)a[i] * b[i] + a[i] - b[i];
	v += (unsigned __int128)b[i] << 40;
	y[2 * i] = (u64)v;
	y[2 * i + 1] = (u64)(v >> 64);
}

extern "C" __global__ void bits(u32 *y, const u32 *a, const u32 *b, int n) {
	int i = INDEX;
	if (i >= n) return;
	u32 x = a[i], z = b[i];
	y[8 * i] = __popc(x) + 100 * __clz(x) + 10000 * __ffs(x);
	y[8 * i + 1] = __brev(x) ^ __byte_perm(x, z, 0x3506);
	y[8 * i + 2] = __funnelshift_l(x, z, z & 31) + __funnelshift_r(x, z, x);
	y[8 * i + 3] = __umulhi(x, z) + (u32)__mulhi((int)x, (int)z);
	y[8 * i + 4] = (x << (z & 31)) | (u32)((int)x >> (z >> 27));
	y[8 * i + 5] = __popcll((u64)x << 32 | z) + __clzll((u64)(x & 15) << 32 | z) + (u32)__ffsll((u64)z << 20);
	y[8 * i + 6] = __vadd4(x, z) ^ __usad(x, z, 7);
	y[8 * i + 7] = __float_as_uint((float)x) ^ (u32)__double2ll_rd((double)(int)z / 3);
}

extern "C" __global__ void small_types(signed char *c, unsigned short *s, const signed char *a, const unsigned short *b, int n) {
	int i = INDEX;
	if (i >= n) return;
	signed char x = a[i];
	unsigned short v = b[i];
	c[i] = (signed char)(x * 3 + (v >> 5) - (x < 0 ? v / 7 : v % 5));
	short w = (short)v;
	s[i] = (unsigned short)((w > x ? w - x : w * x) ^ (w >> 3) ^ max((int)w, -100));
}

// Memory of blocks, warps and atomics.

template <typename T, int N> __device__ T sum_block(T v) {
	__shared__ T part[N];
	part[threadIdx.x] = v;
	__syncthreads();
	for (int s = N / 2; s > 0; s /= 2) {
		if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
		__syncthreads();
	}
	return part[0];
}

template <typename T, int N> __global__ void sums(T *y, const T *x, int n) {
	int i = INDEX;
	T s = sum_block<T, N>(i < n ? x[i] : T(0));
	if (threadIdx.x == 0) y[blockIdx.x] = s;
}
template __global__ void sums<float, 128>(float *, const float *, int);
template __global__ void sums<double, 64>(double *, const double *, int);
template __global__ void sums<int, 256>(int *, const int *, int);

extern "C" __global__ void scan(int *y, const int *x, int n) {
	__shared__ int totals[32];
	int i = INDEX, lane = threadIdx.x & 31, warp = threadIdx.x / 32;
	int v = i < n ? __ldg(x + i) : 0;
	for (int d = 1; d < 32; d *= 2) {
		int u = __shfl_up_sync(0xffffffff, v, d);
		if (lane >= d) v += u;
	}
	if (lane == 31) totals[warp] = v;
	__syncthreads();
	for (int w = 0; w < warp; w++) v += totals[w];
	if (i < n) y[i] = v;
}

extern "C" __global__ void votes(u32 *y, const int *x, int n) {
	int i = INDEX;
	int v = i < n ? x[i] : 0;
	u32 odd = __ballot_sync(0xffffffff, v & 1);
	u32 same = __match_any_sync(0xffffffff, v & 3);
	int any = __any_sync(0xffffffff, v > 90), all = __all_sync(0xffffffff, v >= 0);
	int sum = v;
	for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffff, sum, d);
	double first = __shfl_sync(0xffffffff, (double)v, 5);
	if (i < n) y[i] = odd ^ same * 3 ^ (any << 7) ^ (all << 9) ^ (u32)sum << 16 ^ (u32)(int)first << 4;
}

extern "C" __global__ void histogram(u32 *counts, int *most, u64 *sum, float *total, const int *x, int n) {
	extern __shared__ u32 bins[];
	for (int b = threadIdx.x; b < 64; b += blockDim.x) bins[b] = 0;
	__syncthreads();
	for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) {
		atomicAdd(&bins[x[i] & 63], 1u);
		atomicMax(most, x[i]);
		atomicAdd(sum, (u64)x[i]);
		int *word = (int *)total, old = *(volatile int *)word, seen;
		do {
			seen = old;
			old = atomicCAS(word, seen, __float_as_int(__int_as_float(seen) + (float)(x[i] & 3)));
		} while (old != seen);
	}
	__syncthreads();
	for (int b = threadIdx.x; b < 64; b += blockDim.x) atomicAdd(&counts[b], bins[b]);
}

extern "C" __global__ void block_votes(int *y, const int *x, int n) {
	int i = INDEX;
	int v = i < n ? x[i] : 0;
	int count = __syncthreads_count(v > 50), any = __syncthreads_or(v == 99), all = __syncthreads_and(v < 99);
	if (i < n) y[i] = 4 * count + 2 * (any != 0) + (all != 0);
}

extern "C" __global__ void transpose(float *y, const float *x, int rows, int cols) {
	extern __shared__ float tile[]; // 16 rows of 17
	int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
	if (r < rows && c < cols) tile[threadIdx.y * 17 + threadIdx.x] = x[r * cols + c];
	__syncthreads();
	c = blockIdx.y * 16 + threadIdx.x, r = blockIdx.x * 16 + threadIdx.y;
	if (r < cols && c < rows) y[r * rows + c] = tile[threadIdx.x * 17 + threadIdx.y];
}

__device__ u32 arrived;
__device__ float partial[64];

// The last block adds what all have left in an array of the module.
extern "C" __global__ void last_block(float *y, const float *x, int n) {
	__shared__ bool last;
	float s = 0;
	for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) s += x[i];
	s = sum_block<float, 64>(s);
	if (threadIdx.x == 0) {
		((volatile float *)partial)[blockIdx.x] = s;
		__threadfence();
		last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
	}
	__syncthreads();
	if (last && threadIdx.x == 0) {
		__threadfence();
		s = 0;
		for (u32 b = 0; b < gridDim.x; b++) s += ((volatile float *)partial)[b];
		*y = s;
	}
}

// Functions, the stack, and arrays of the module.

struct vec { float x, y, z; int tag; };

__device__ __noinline__ vec cross(vec a, const vec &b) {
	vec c = {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x, a.tag + b.tag};
	return c;
}

__device__ __noinline__ float norm(const vec *a, float *largest) {
	*largest = fmaxf(fabsf(a->x), fmaxf(fabsf(a->y), fabsf(a->z)));
	return sqrtf(a->x * a->x + a->y * a->y + a->z * a->z);
}

extern "C" __global__ void structures(float *y, const float *x, int n) {
	int i = INDEX;
	if (i >= n) return;
	vec a = {x[3 * i], x[3 * i + 1], x[3 * i + 2], i}, b = {1, -2, 0.5f, 7};
	if (i & 1) b = cross(b, a);
	vec c = cross(a, b);
	float most;
	y[3 * i] = norm(&c, &most);
	y[3 * i + 1] = most;
	y[3 * i + 2] = c.tag;
}

__device__ __noinline__ int ackermann(int m, int n) {
	if (m == 0) return n + 1;
	if (n == 0) return ackermann(m - 1, 1);
	return ackermann(m - 1, ackermann(m, n - 1));
}

__device__ __noinline__ u32 hanoi(u32 n, int from, int to, u32 seed) {
	if (n == 0) return seed;
	int by = 3 - from - to;
	seed = hanoi(n - 1, from, by, seed);
	seed = seed * 31 + from * 3 + to;
	return hanoi(n - 1, by, to, seed);
}

__device__ __noinline__ bool odd(u32 n);
__device__ __noinline__ bool even(u32 n) { return n == 0 || odd(n - 1); }
__device__ __noinline__ bool odd(u32 n) { return n != 0 && even(n - 1); }

extern "C" __global__ void recursion(u32 *y, int n) {
	int i = INDEX;
	if (i >= n) return;
	u32 v = ackermann(i % 3, i % 5);
	if (i % 7 != 2) v += hanoi(i % 6, 0, 2, i);
	y[i] = v * 2 + even(i % 23);
}

__device__ __noinline__ void quicksort(int *a, int from, int to) {
	if (to - from < 2) return;
	int pivot = a[(from + to) / 2], i = from, j = to - 1;
	while (i <= j) {
		while (a[i] < pivot) i++;
		while (a[j] > pivot) j--;
		if (i <= j) {
			int t = a[i];
			a[i++] = a[j];
			a[j--] = t;
		}
	}
	quicksort(a, from, j + 1);
	quicksort(a, i, to);
}

extern "C" __global__ void sort_local(int *y, const int *x, int n) {
	int i = INDEX, a[20];
	if (i >= n) return;
	for (int j = 0; j < 20; j++) a[j] = x[20 * i + j];
	quicksort(a, 0, 20);
	for (int j = 0; j < 20; j++) y[20 * i + j] = a[j];
}

// A pointer may point into any memory.
__device__ __noinline__ void bump(int *p, int by) { *p += by; }

extern "C" __global__ void pointers(int *y, int n) {
	__shared__ int s[64];
	int i = INDEX, local[4] = {1, 2, 3, 4};
	if (i >= n) return;
	s[threadIdx.x] = i;
	y[i] = 5 * i;
	bump(i % 3 == 0 ? &s[threadIdx.x] : i % 3 == 1 ? &local[i % 4] : &y[i], 100);
	bump(&local[i & 3], i);
	y[i] += s[threadIdx.x] + 10 * local[0] + 20 * local[1] + 30 * local[2] + 40 * local[3];
}

__constant__ float coefficients[8] = {1, -0.5f, 0.25f, 3, 0, 0, 1e-3f, -2};
__constant__ int given[4]; // which the host sets
__device__ short table[3][5] = {{1, 2, 3, 4, 5}, {-1, -2, -3}, {1000, 2000, 3000, 4000, -32768}};
__device__ short *row = &table[2][1];
__device__ double factor = 0.125;
struct entry { char kind; int value; const char *name; };
__constant__ entry entries[3] = {{'a', 10, "first"}, {'b', -20, "second"}, {'c', 30, "third"}};

extern "C" __global__ void tables(float *y, const float *x, int n) {
	int i = INDEX;
	if (i >= n) return;
	float v = 0;
	for (int j = 7; j >= 0; j--) v = v * x[i] + coefficients[j];
	const entry &e = entries[i % 3];
	y[i] = v + table[i % 3][i % 5] + row[i % 4] * (float)factor + given[i & 3] + e.kind * e.value + e.name[i % 5];
}

__device__ int calls;

extern "C" __global__ void count_calls(int *y) {
	if (threadIdx.x == 0) *y = ++calls;
}

typedef float (*function)(float, float);
__device__ __noinline__ float add(float x, float y) { return x + y; }
__device__ __noinline__ float mul(float x, float y) { return x * y; }
__device__ __noinline__ float pick(float x, float y) { return x < y ? x : y * 2; }
__device__ function functions[3] = {add, mul, pick};

extern "C" __global__ void indirect(float *y, const float *x, const int *which, int n) {
	int i = INDEX;
	if (i < n) y[i] = functions[which[i]](x[i], 1.5f);
}

struct shape {
	__device__ virtual float area(float s) const = 0;
};
struct square : shape {
	__device__ __noinline__ float area(float s) const override { return s * s; }
};
struct circle : shape {
	float pi = 3.14159265f;
	__device__ __noinline__ float area(float s) const override { return pi * s * s; }
};

extern "C" __global__ void virtuals(float *y, const float *x, int n) {
	int i = INDEX;
	if (i >= n) return;
	square s;
	circle c;
	const shape *p = &s;
	if (x[i] > 1) p = &c;
	y[i] = p->area(x[i]);
}

// A switch that jumps through a table.
extern "C" __global__ void jumps(int *y, const int *x, int n) {
	int i = INDEX;
	if (i >= n) return;
	int v = x[i], r = 0;
	for (int step = 0; step < 40 && v >= 0; step++) {
		switch (v % 11) {
		case 0: r += v; v = v / 2 - 1; break;
		case 1: r ^= v << 3; v -= 7; break;
		case 2: r = r * 3 + 1; v -= 2; break;
		case 3: r -= y[i]; v -= 5;
		case 4: r += 17; v -= 3; break;
		case 5: r = __brev(r); v -= 1; break;
		case 6: v -= 9; continue;
		case 7: r = ~r; v -= 4; break;
		case 8: r |= 64; v /= 3; break;
		case 9: r = r / 5; v -= 11; break;
		default: r ^= 0x5555; v -= 6;
		}
		r += step;
	}
	y[i] = r;
}

// Halves.

extern "C" __global__ void halves(__half *y, const __half *x, int n) {
	int i = INDEX;
	if (2 * i + 1 >= n) return;
	__half2 v = ((const __half2 *)x)[i];
	__half2 w = __hfma2(v, __float2half2_rn(1.5f), __floats2half2_rn(-0.25f, 2));
	w = __hadd2(w, __hmul2(v, v));
	__half a = __low2half(w), b = __hmax(__high2half(w), __float2half(0.5f));
	if (__hgt(a, b)) a = __hsub(a, __hdiv(b, __float2half(3)));
	y[2 * i] = __hneg(a);
	y[2 * i + 1] = __float2half(__half2float(b) + (__hlt(a, __float2half(0)) ? 1.0f : 0.0f) + __half2int_rn(a));
}

#if __CUDA_ARCH__ >= 800
extern "C" __global__ void brains(__nv_bfloat16 *y, const __nv_bfloat16 *x, int n) {
	int i = INDEX;
	if (i >= n) return;
	__nv_bfloat16 v = __hfma(x[i], __float2bfloat16(1.5f), __float2bfloat16(-0.25f));
	y[i] = __hadd(__hmul(v, x[i]), __float2bfloat16(__bfloat162float(x[i]) * 3));
}

extern "C" __global__ void reduce_warp(int *y, const int *x) {
	int v = x[threadIdx.x];
	y[threadIdx.x] = __reduce_add_sync(0xffffffff, v) ^ __reduce_min_sync(0xffffffff, v);
}
#endif

extern "C" __global__ void vectors(float4 *y, const float4 *x, const int2 *k, int n) {
	int i = INDEX;
	if (i >= n) return;
	float4 v = x[i];
	int2 w = __ldg(k + i);
	v.x += w.x, v.y *= w.y, v.z -= w.x, v.w = v.w / 3 + __fdividef(v.x, 7);
	y[i] = v;
}

// What the emulator cannot run: its own affair.
extern "C" int printf(const char *, ...);
extern "C" __global__ void prints(int n) { printf("%d\n", n); }
