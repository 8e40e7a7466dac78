/**
 * Addresses of actors. The address determines the actor's shard, its storage key and its NATS
 * subject; a storage key or a subject determines the address.
 */
/** Number of shards, a power of two; it never changes in a store or cluster. */
export const SHARDS = 256

/**
 * The address of one actor: its kind, and which one of that kind. Every address is that of an
 * actor: nobody creates one.
 */
export interface Address {
  /** Lower-case name of the behavior, `[a-z][a-z-]*`. */
  readonly kind: string
  /** `[A-Za-z0-9_=-]+`; the text before the first `=` determines the shard. */
  readonly id: string
}

const idPattern = /^[A-Za-z0-9_=-]{1,200}$/

const kindPattern = /^[a-z][a-z-]{0,31}$/

/** The address of `kind` and `id`; a character that keys or subjects do not allow is a defect. */
export const address = (kind: string, id: string): Address => {
  if (!kindPattern.test(kind)) throw new TypeError(`not an actor kind: ${JSON.stringify(kind)}`)
  if (!idPattern.test(id)) throw new TypeError(`not an actor id: ${JSON.stringify(id)}`)
  return { kind, id }
}

/** Whether an untrusted text is a valid actor id. */
export const isActorId = (text: string): boolean => idPattern.test(text)

/** The part of an id that determines the shard: the text before its first `=`. */
export const placingPart = (id: string): string => {
  const end = id.indexOf("=")
  return end <= 0 ? id : id.slice(0, end)
}

/** The shard of an address, 0 to 255: FNV-1a (32 bit) of the placing part, folded. */
export const shardOf = ({ id }: Address): number => {
  const text = placingPart(id)
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  }
  return ((hash >>> 16) ^ hash) & (SHARDS - 1)
}

/** `<kind>/<id>`: the address as text in maps, logs and the embedded store. */
export const keyOf = ({ kind, id }: Address): string => `${kind}/${id}`

/** The address of a {@link keyOf} key. */
export const fromKey = (key: string): Address => {
  const slash = key.indexOf("/")
  return address(key.slice(0, slash), key.slice(slash + 1))
}

/** `restante.<kind>.<shard>.<id>`: the subject for messages of any NATS client. */
export const subjectOf = (to: Address): string => `restante.${to.kind}.${shardOf(to)}.${to.id}`

/** The address of a {@link subjectOf} subject; undefined for any other subject. */
export const fromSubject = (subject: string): Address | undefined => {
  const [root, kind, shard, id, ...rest] = subject.split(".")
  if (root !== "restante" || kind === undefined || id === undefined || rest.length > 0) return
  if (!kindPattern.test(kind) || !idPattern.test(id)) return
  const to = { kind, id }
  return String(shardOf(to)) === shard ? to : undefined
}
