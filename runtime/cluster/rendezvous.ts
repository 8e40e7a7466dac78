/**
 * Rendezvous hashing: of all nodes the one with the highest draw for a shard should own it. Every
 * node comes to the same result by itself, and a node that comes or goes moves only the shards
 * that it takes or leaves.
 */
import { SHARDS } from "../actor/index.ts"

/** FNV-1a, then mixed so that names which differ little draw as differently as any. */
const draw = (node: string, shard: number): number => {
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
  // In one order, so that equal draws are decided alike everywhere.
  const names = [...nodes].sort()
  return Array.from({ length: SHARDS }, (_, shard) => {
    let owner: string | undefined
    let highest = -1
    for (const node of names) {
      const drawn = draw(node, shard)
      if (drawn <= highest) continue
      highest = drawn
      owner = node
    }
    return owner
  })
}
