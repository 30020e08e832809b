"""Fits the polynomials of erfinv(x)/x in op/trigonometric.go: least squares, weighted
until the relative error is even.

    python3 fit_erfinv.py

Needs mpmath and numpy.
"""
import mpmath as mp, numpy as np
mp.mp.prec=100
def f(w):  # erfinv(x)/x with 1-x^2=e^-w
    if w==0: return mp.sqrt(mp.pi)/2
    x=mp.sqrt(-mp.expm1(-w)); return mp.erfinv(x)/x
def fit(g,a,b,c,n):
    N=120
    k=np.arange(N); t=np.cos(np.pi*(k+.5)/N)
    xs=[(a+b)/2+(b-a)/2*mp.mpf(float(v)) for v in t]
    ys=[g(v) for v in xs]
    A=np.array([[float((v-c))**j for j in range(n+1)] for v in xs]); y=np.array([float(v) for v in ys])
    wt=1/y
    for it in range(40):
        co=np.linalg.lstsq(A*wt[:,None],y*wt,rcond=None)[0]
        r=abs(A@co/y-1); wt=wt*(r/r.max()+.05)**.3
    c32=co.astype(np.float32).astype(float)
    return c32, abs(A@c32/y-1).max(), r.max()
for n in (8,):
    c,e,r=fit(f,mp.mpf(0),mp.mpf(5),2.5,n); print(n,e*2**23,r*2**23,[repr(float(np.float32(v))) if 0 else "%.9g"%v for v in c])
for n in (8,):
    c,e,r=fit(lambda s:f(s*s),mp.sqrt(5),mp.mpf(4.08),3,n); print('s',n,e*2**23,r*2**23,["%.9g"%v for v in c])
