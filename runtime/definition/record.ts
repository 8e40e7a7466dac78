/**
 * The records of a definition's states: JSON by the Schema, in the version that the definition
 * writes, with the actor's timer beside it. What a record has and this program does not know is
 * kept and written back, because a later program may have written it.
 */
import { Schema } from "effect"
import type { Tagged } from "../actor/index.ts"
import type { Migration } from "./migration.ts"
import type { ActorTimer } from "./recurrence.ts"
import { fieldNames, schemaOf, type Shape } from "./shapes.ts"

/** The field of a record with what is not the actor's state; no state has a field of this name. */
export const envelopeField = "$"

type Fields = Readonly<Record<string, unknown>>

/** What a record holds beside the state. */
export interface RecordMeta {
  readonly timer: ActorTimer | undefined
  /** Fields of the state of a later program. */
  readonly unknown: Fields | undefined
  /** Objects within the state have fields of a later program. */
  readonly hasUnknownWithin: boolean
  /** What a later runtime stored beside the state. */
  readonly envelope: Fields | undefined
}

export const emptyMeta: RecordMeta = {
  timer: undefined,
  unknown: undefined,
  hasUnknownWithin: false,
  envelope: undefined
}

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) &&
  [Object.prototype, null].includes(Object.getPrototypeOf(value))

const childrenOf = (value: unknown): ReadonlyArray<readonly [string, unknown]> =>
  Array.isArray(value) || isFields(value) ? Object.entries(value) : []

/** The fields of the objects within states that a later program wrote, by object. */
class UnknownWithin {
  private readonly fields = new WeakMap<object, Fields>()

  /** Notes the fields of `raw` that `decoded` lacks, at all depths; true if there are any. */
  note(decoded: unknown, raw: unknown): boolean {
    let found = false
    if (isFields(decoded) && isFields(raw)) {
      const unknown = Object.entries(raw).filter(([name]) => !Object.hasOwn(decoded, name))
      if (unknown.length > 0) {
        this.fields.set(decoded, Object.fromEntries(unknown))
        found = true
      }
    }
    const others = new Map(childrenOf(raw))
    for (const [name, child] of childrenOf(decoded)) {
      if (this.note(child, others.get(name))) found = true
    }
    return found
  }

  /** What is stored for `decoded`: `encoded`, with the noted fields where they were. */
  restore(decoded: unknown, encoded: unknown): unknown {
    const parts = new Map(childrenOf(decoded))
    if (Array.isArray(encoded)) {
      return encoded.map((item, at) => this.restore(parts.get(String(at)), item))
    }
    if (!isFields(encoded)) return encoded
    const known = Object.entries(encoded)
      .map(([name, value]) => [name, this.restore(parts.get(name), value)])
    const unknown = isFields(decoded) ? this.fields.get(decoded) : undefined
    return { ...unknown, ...Object.fromEntries(known) }
  }
}

/** One version of the states. */
interface Version {
  readonly decode: (raw: unknown) => Tagged
  readonly encode: (state: unknown) => unknown
  /** Throws unless the value is a state of this version. */
  readonly check: (state: unknown) => void
  readonly names: ReadonlySet<string> | undefined
  readonly migration: Migration | undefined
}

const versionOf = (shape: Shape, migration?: Migration): Version => {
  const schema = schemaOf(shape)
  const codec = Schema.toCodecJson(schema)
  return {
    decode: Schema.decodeUnknownSync(codec),
    encode: Schema.encodeUnknownSync(codec),
    check: Schema.decodeUnknownSync(Schema.toType(schema)),
    names: fieldNames(shape),
    migration
  }
}

export interface RecordOptions {
  readonly kind: string
  readonly state: Shape
  /** The older versions, the first one first; those before the last few may be missing no more. */
  readonly migrations: ReadonlyArray<Migration>
  /** The version to write: the newest, or an older one while older programs run. */
  readonly writes: number | undefined
  readonly hasTimer: boolean
}

export class RecordCodec {
  private readonly kind: string
  private readonly versions: ReadonlyArray<Version>
  private readonly writes: number
  private readonly hasTimer: boolean
  private readonly metas = new WeakMap<object, RecordMeta>()
  private readonly within = new UnknownWithin()

  /** Throws a RangeError when `writes` is no version, or one to which no migration leads back. */
  constructor({ hasTimer, kind, migrations, state, writes }: RecordOptions) {
    const newest = migrations.length + 1
    this.kind = kind
    this.hasTimer = hasTimer
    this.writes = writes ?? newest
    this.versions = [
      ...migrations.map((migration) => versionOf(migration.state, migration)),
      versionOf(state)
    ]
    if (!Number.isInteger(this.writes) || this.writes < 1 || this.writes > newest) {
      throw new RangeError(`${kind} writes version ${writes}: use one from 1 to ${newest}`)
    }
    const oneWay = migrations.findIndex(({ down }, at) => at >= this.writes - 1 && !down)
    if (oneWay >= 0) {
      const detail = `its migration ${oneWay + 1} has no \`down\``
      throw new RangeError(`${kind} writes version ${this.writes}, but ${detail}: add it`)
    }
  }

  /** What belongs to this state beside it; undefined for a state that no record or cell made. */
  metaOf(state: object): RecordMeta | undefined {
    return this.metas.get(state)
  }

  /** The state with this meta: a copy, where the meta says anything of this one actor. */
  withMeta<State extends object>(state: State, meta: RecordMeta): State {
    const isBare = meta.timer === undefined && meta.unknown === undefined &&
      !meta.hasUnknownWithin && meta.envelope === undefined
    // Actors may share a state that is a constant of the program.
    const own = isBare ? state : { ...state }
    this.metas.set(own, isBare ? emptyMeta : meta)
    return own
  }

  readonly encode = (state: Tagged): string => {
    const meta = this.metas.get(state) ?? emptyMeta
    let older: object = state
    for (let version = this.versions.length; version > this.writes; version--) {
      const previous = this.version(version - 1)
      // The constructor has checked that there is one.
      older = previous.migration?.down?.(older) ?? older
    }
    const encoded = this.version(this.writes).encode(older)
    // Most states have nothing beside them.
    if (meta === emptyMeta && this.writes === 1) return JSON.stringify(encoded)
    const { envelope, hasUnknownWithin, timer, unknown } = meta
    const whole = hasUnknownWithin ? this.within.restore(older, encoded) : encoded
    const beside = {
      ...envelope,
      ...(this.writes === 1 ? {} : { version: this.writes }),
      ...(timer === undefined ? {} : { timer })
    }
    // A state is an object, and so is its encoded form.
    const fields = whole as object
    const hasBeside = Object.keys(beside).length > 0
    if (!hasBeside && unknown === undefined) return JSON.stringify(fields)
    return JSON.stringify({
      ...unknown,
      ...fields,
      ...(hasBeside ? { [envelopeField]: beside } : {})
    })
  }

  /** Throws when the record is of a later version, or is not a state of its version. */
  readonly decode = (text: string): Tagged => {
    // `encode` wrote it: an object.
    const { [envelopeField]: beside, ...raw } = JSON.parse(text) as Fields
    const { timer, version = 1, ...envelope } = (beside ?? {}) as {
      readonly timer?: ActorTimer
      readonly version?: number
    }
    if (version > this.versions.length) {
      const readable = `this program reads versions up to ${this.versions.length}`
      throw new Error(
        `an actor of kind ${this.kind} is stored in version ${version}, and ${readable}: ` +
          "start a program that reads it"
      )
    }
    const stored = this.version(version)
    const decoded = stored.decode(raw)
    const hasUnknownWithin = childrenOf(decoded)
      .some(([name, child]) => this.within.note(child, raw[name]))
    const unknown = Object.entries(raw)
      .filter(([name]) => !Object.hasOwn(decoded, name) && stored.names?.has(name) !== true)
    const state = this.migrated(decoded, version)
    const meta: RecordMeta = {
      timer,
      unknown: unknown.length === 0 ? undefined : Object.fromEntries(unknown),
      hasUnknownWithin,
      envelope: Object.keys(envelope).length === 0 ? undefined : envelope
    }
    const needsMeta = this.hasTimer || meta.unknown !== undefined || hasUnknownWithin ||
      meta.envelope !== undefined || timer !== undefined
    return needsMeta ? this.withMeta(state, meta) : state
  }

  private migrated(decoded: Tagged, from: number): Tagged {
    let state = decoded
    for (let version = from; version < this.versions.length; version++) {
      const up = this.version(version).migration?.up(state)
      this.version(version + 1).check(up)
      // The check is that it is a state of the next version.
      state = up as Tagged
    }
    return state
  }

  private version(number: number): Version {
    const version = this.versions[number - 1]
    if (version === undefined) throw new Error(`${this.kind} has no version ${number}`)
    return version
  }
}
