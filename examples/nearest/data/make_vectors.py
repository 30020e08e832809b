"""Makes words.txt and vectors.bin from the WordNet 3.0 database.

    python3 make_vectors.py [folder of the database, /usr/share/wordnet]

Needs numpy and scipy. A word's vector comes from what WordNet says of it: the
words that define its senses, its synonyms, and those of the terms above and
below it, counted, weighted and reduced to 64 dimensions (latent semantic
analysis). See README.md for the layout of both files.
"""

import collections
import math
import re
import sys

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

WORDS, DIMS = 4096, 64
folder = sys.argv[1] if len(sys.argv) > 1 else "/usr/share/wordnet"

STOP = set("""a an and any are as at be been being but by can did do does done each else etc for from had has have having
he her him his how i if in into is it its itself may more most no not of off on one or other others our out over own she
so some someone something such than that the their them then there these they this those through to too under up upon
used usually very was were when where which while who whom whose will with without you your especially between about
all also among because before after both during either against around used's two made many much only often""".split())


def tokens(text):
    return [t for t in re.findall(r"[a-z]+", text.lower()) if len(t) > 2 and t not in STOP]


# Synsets of nouns and verbs: words, pointers, definition without its examples.
synsets, counts = {}, collections.Counter()
for pos, name in (("n", "noun"), ("v", "verb")):
    for line in open(f"{folder}/data.{name}"):
        if line.startswith("  "):
            continue
        data, _, gloss = line.partition("|")
        f = data.split()
        n = int(f[3], 16)
        lemmas = [w.lower() for w in f[4 : 4 + 2 * n : 2]]
        p = f[4 + 2 * n :]
        pointers = [(p[1 + 4 * i], p[2 + 4 * i], p[3 + 4 * i]) for i in range(int(p[0]))]
        synsets[pos, f[0]] = (lemmas, pointers, tokens(re.sub(r'"[^"]*"', "", gloss)))

# The index lists the senses of a word with the most frequent first.
ranks = {}
for pos, name in (("n", "noun"), ("v", "verb")):
    for line in open(f"{folder}/index.{name}"):
        f = line.split()
        if not line.startswith("  "):
            for i, offset in enumerate(f[-int(f[2]) :], 1):
                ranks[f[0], pos, offset] = i

# How often people used each word in WordNet's tagged texts chooses the words.
for line in open(f"{folder}/cntlist.rev"):
    key, _, count = line.split()
    lemma, _, rest = key.partition("%")
    if rest[0] in "12" and re.fullmatch(r"[a-z]{3,}", lemma) and lemma not in STOP:
        counts[lemma] += int(count)

nouns = {w for (pos, _), (lemmas, _, _) in synsets.items() if pos == "n" for w in lemmas}
words = [w for w, _ in counts.most_common() if w in nouns][:WORDS]
index = {w: i for i, w in enumerate(words)}

# Contexts: a definition's words weigh 1, synonyms 2, the terms above 2, below 0.5.
rows, cols, vals, features = [], [], [], {}
KIN = {"@": 2.0, "@i": 2.0, "~": 0.5, "#p": 1.0, "%p": 0.5, "+": 1.0}
for (pos, offset), (lemmas, pointers, gloss) in synsets.items():
    bag = collections.Counter(gloss)
    for l in lemmas:
        bag["=" + l] += 2
        bag[l] += 1
    for kind, target, tpos in pointers:
        if kind in KIN and (tpos, target) in synsets:
            tl, _, tg = synsets[tpos, target]
            for l in tl:
                bag["=" + l] += KIN[kind]
            for t in tg:
                bag[t] += KIN[kind] / 4
    for l in lemmas:
        if l in index:
            rank = ranks.get((l, pos, offset), 9)
            for t, v in bag.items():
                rows.append(index[l])
                cols.append(features.setdefault(t, len(features)))
                vals.append(v / rank)

m = scipy.sparse.csr_matrix((vals, (rows, cols)), shape=(len(words), len(features)))
m.sum_duplicates()
present = np.asarray((m > 0).sum(axis=0)).ravel()
m = m[:, present >= 3]
idf = np.log(len(words) / present[present >= 3])
m.data = np.log1p(m.data)
m = m @ scipy.sparse.diags(idf)
length = np.sqrt(np.asarray(m.multiply(m).sum(axis=1)).ravel())
m = scipy.sparse.diags(1 / length) @ m
u, s, _ = scipy.sparse.linalg.svds(m, k=DIMS, random_state=1)
order = np.argsort(-s)
v = u[:, order] * np.sqrt(s[order])
v *= np.sign(v[np.abs(v).argmax(axis=0), range(DIMS)])  # a decomposition leaves the signs open
q = np.rint(127 * v / np.abs(v).max(axis=1, keepdims=True)).astype(np.int8)

open("words.txt", "w").write("\n".join(words) + "\n")
q.tofile("vectors.bin")

unit = q / np.linalg.norm(q.astype(float), axis=1, keepdims=True)
for w in ["coffee", "river", "king", "music", "money", "winter", "doctor", "theory", "ship", "anger"]:
    near = np.argsort(-(unit @ unit[index[w]]))[1:7]
    print(w, *[f"{words[i]} {unit[i] @ unit[index[w]]:.2f}" for i in near])
