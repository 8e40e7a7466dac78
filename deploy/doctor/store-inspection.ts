/** Inspects a whole store for contradictions, while nodes may use it. */
import { Effect } from "effect"
import type { Keyring } from "../../actors/index.ts"
import { type ActorPart, type AnyBehavior, decodeStoredState, keyOf } from "../../runtime/index.ts"
import { type ArchiveSource, BlobChecksum, blobOf, type BlobPart, Counter, type Counts, partsOf,
  StoredSecrets } from "../archive/index.ts"
import { reasonOf } from "../command-failure.ts"

/** The result: counts, and a sentence for each fault. */
export interface StoreInspection {
  readonly counts: Counts
  readonly faults: ReadonlyArray<string>
}

/** A sentence if there are secrets that no key opens. */
export const secretFaults = ({ isWhole, missingKeys, unopened }: StoredSecrets) => {
  if (isWhole) return []
  const { messagePasswords, registrations, serviceKeys, webhooks } = unopened
  const keys = missingKeys.length === 0 ? "changed" : `under the key ${missingKeys.join(", ")}`
  return [
    `secrets that SECRET_KEY_FILE does not open (${keys}): ${serviceKeys} service key, ` +
    `${messagePasswords} message passwords, ${registrations} push registrations, ` +
    `${webhooks} secrets of webhooks`
  ]
}

class Inspector {
  readonly counter = new Counter()
  readonly faults: Array<string> = []
  readonly secrets: StoredSecrets
  private readonly source: ArchiveSource
  private readonly behaviors: ReadonlyMap<string, AnyBehavior>
  private last = { key: "", n: 0 }

  constructor(
    source: ArchiveSource,
    behaviors: ReadonlyArray<AnyBehavior>,
    secrets: StoredSecrets
  ) {
    this.source = source
    this.secrets = secrets
    this.behaviors = new Map(behaviors.map((one) => [one.kind, one]))
  }

  async run(): Promise<void> {
    for await (const part of partsOf(this.source)) {
      if (part._tag === "Blob") await this.inspectBlob(part)
      else this.secrets.changed(part)
      if (part._tag === "Items" || part._tag === "Actor") {
        this.inspectItems(keyOf(part.address), part.items)
      }
      if (part._tag === "Actor") await this.inspectActor(part)
      this.counter.add(part)
    }
  }

  private inspectItems(key: string, items: ActorPart["items"]): void {
    if (this.last.key !== key) this.last = { key, n: 0 }
    for (const { n } of items) {
      if (n <= this.last.n) this.faults.push(`actor ${key}: item ${n} follows item ${this.last.n}`)
      this.last.n = n
    }
  }

  private async inspectActor(part: ActorPart): Promise<void> {
    const { address, head, state } = part
    const key = keyOf(address)
    if (this.last.key === key && this.last.n > head) {
      this.faults.push(`actor ${key}: item ${this.last.n} is beyond its head, ${head}`)
    }
    const behavior = this.behaviors.get(address.kind)
    // A timer may create an actor, but only of an existing kind.
    if (behavior === undefined) {
      this.faults.push(`actor ${key}: the kind ${address.kind} does not exist`)
    } else if (state !== undefined) {
      try {
        const { format, text } = decodeStoredState(state)
        behavior.decode(text, format, address)
      } catch (error) {
        this.faults.push(`actor ${key}: unreadable state: ${String(error).split("\n")[0] ?? ""}`)
      }
    }
    const blob = blobOf(part)
    if (blob !== undefined && !await this.hasBlob(part, blob)) {
      this.faults.push(`actor ${key}: its blob ${blob} is missing`)
    }
  }

  /** A writer that replaces a blob stores the content before it removes the old blob. */
  private async hasBlob({ address }: ActorPart, blob: string): Promise<boolean> {
    if (await Effect.runPromise(this.source.blobs.info(blob)) !== undefined) return true
    for await (const part of this.source.contents.actor(address)) {
      if (part._tag === "Actor" && blobOf(part) === blob) return false
    }
    return true
  }

  private async inspectBlob(part: BlobPart): Promise<void> {
    const { bytes, id, lengthBytes } = part
    const checksum = new BlobChecksum()
    try {
      for await (const piece of bytes) checksum.add(piece)
    } catch (error) {
      if (await Effect.runPromise(this.source.blobs.info(id)) !== undefined) {
        this.faults.push(`blob ${id}: ${reasonOf(error)}`)
      }
      return
    }
    if (checksum.matches(part)) return
    const found = checksum.lengthBytes
    this.faults.push(
      found === lengthBytes
        ? `blob ${id}: its SHA-256 differs`
        : `blob ${id}: ${found} bytes instead of ${lengthBytes}`
    )
  }
}

/** Reads everything in the store. Throws StorageFailure. */
export const inspectStore = async (
  source: ArchiveSource,
  behaviors: ReadonlyArray<AnyBehavior>,
  keyring: Keyring
): Promise<StoreInspection> => {
  const inspector = new Inspector(source, behaviors, new StoredSecrets(keyring))
  await inspector.run()
  const faults = [...inspector.faults, ...secretFaults(inspector.secrets)]
  return { counts: inspector.counter.counts, faults }
}
