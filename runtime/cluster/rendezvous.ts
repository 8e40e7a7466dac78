/**
 * Rendezvous hashing (Thaler and Ravishankar, 1998): the node with the highest weight for a shard
 * should own it. Every node computes the same result. When a node joins or leaves, only its own
 * shards move.
 */
import { SHARDS } from "../actor/index.ts"

/** FNV-1a with the finalizer of MurmurHash3, so that similar names get unrelated weights. */
const weightOf = (node: string, shard: number): number => {
  let hash = 0x811c9dc5 ^ shard
  for (let at = 0; at < node.length; at++) {
    hash = Math.imul(hash ^ node.charCodeAt(at), 0x01000193)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

/** The node that should own each shard; undefined when there are no nodes. */
export const ownersAmong = (nodes: Iterable<string>): ReadonlyArray<string | undefined> => {
  // Sorted, so that all nodes resolve equal weights alike.
  const names = [...nodes].sort()
  return Array.from({ length: SHARDS }, (_, shard) => {
    let owner: string | undefined
    let highest = -1
    for (const node of names) {
      const weight = weightOf(node, shard)
      if (weight <= highest) continue
      highest = weight
      owner = node
    }
    return owner
  })
}

/** The names by their weight for `of`, the highest first: alike on every node. */
export const ranked = (of: string, names: Iterable<string>): ReadonlyArray<string> =>
  [...names].sort().map((name) => ({ name, weight: weightOf(`${name} ${of}`, 0) }))
    .sort((one, other) => other.weight - one.weight).map(({ name }) => name)
