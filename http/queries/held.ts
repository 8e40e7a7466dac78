/**
 * Rows of an indexed table in memory, packed, as many as there is room for: parts of the table
 * that are known, and parts that are not, in the order of keys. The store stays the truth: what
 * changes makes its part unknown, until it is read again.
 */
import { Effect } from "effect"
import type { RecordsApi, StorageFailure } from "../../runtime/index.ts"
import { type Columns, columnsOf } from "./block.ts"
import type { NumberRange } from "./condition.ts"
import type { TableSchema } from "./fields.ts"
import {
  blockRows,
  fillPauseMs,
  fillRest,
  fillRows,
  heldBytesMax,
  heldLoadsMax,
  spareRows
} from "./limits.ts"
import { isWithin, Parts } from "./parts.ts"
import type { Chunk, RowEntry, RowSource } from "./sources.ts"

export interface HeldBounds {
  readonly blockRows: number
  readonly fillPauseMs: number
  readonly fillRows: number
  readonly heldBytesMax: number
  readonly heldLoadsMax: number
}

const usual: HeldBounds = {
  blockRows,
  fillPauseMs,
  fillRows,
  heldBytesMax,
  heldLoadsMax
}

/** Rows as they are held, until a part is reached that is not. */
export interface HeldSource {
  readonly next: RowSource
  /** After (before, in reverse) which key the store must be read; undefined: not at all so far. */
  readonly stopped: () => { readonly after: string | undefined } | undefined
}

export class RowCache {
  private readonly records: RecordsApi
  private readonly table: TableSchema
  private readonly bounds: HeldBounds
  private readonly parts: Parts
  /** Keys that not everybody sees alike yet, and how many changes of each are under way. */
  private readonly changing = new Map<string, number>()
  private changes = 0
  private isFilling = false

  constructor(records: RecordsApi, table: TableSchema, columns: Columns, bounds = usual) {
    this.records = records
    this.table = table
    this.bounds = bounds
    this.parts = new Parts(columns, bounds.blockRows)
    records.watch(table.name, {
      changing: (key) => {
        this.parts.changed(key)
        this.changing.set(key, (this.changing.get(key) ?? 0) + 1)
      },
      changed: (key) => {
        this.changes++
        this.parts.changed(key)
        if (key === undefined) return
        const others = (this.changing.get(key) ?? 1) - 1
        if (others === 0) this.changing.delete(key)
        else this.changing.set(key, others)
      }
    })
  }

  /** What they take in memory, about. */
  get bytes(): number {
    return this.parts.bytes
  }

  /** Whether all of the table is held, or as much as there is room for. */
  get isFull(): boolean {
    return this.parts.isOff || this.bytes >= this.bounds.heldBytesMax || this.parts.isWhole
  }

  /** Rows within the span in the order of their keys, or in its reverse, after a key. */
  read(after: string | undefined, reverse: boolean, span: NumberRange): HeldSource {
    let bound = after
    let stopped: ReturnType<HeldSource["stopped"]>
    let loads: number | undefined
    const next = Effect.fnUntraced({ self: this }, function*(
      this: RowCache,
      wanted: number
    ): Effect.fn.Return<Chunk, StorageFailure> {
      const entries: Array<RowEntry> = []
      const chunk = (isLast: boolean): Chunk => ({
        entries,
        scanned: entries.length,
        last: entries.at(-1)?.key ?? bound,
        isLast
      })
      if (loads === undefined && !(yield* this.records.isCurrent)) {
        stopped = { after: bound }
        return chunk(true)
      }
      loads ??= 0
      while (!this.parts.isOff) {
        const place = this.parts.collect(entries, { bound, reverse, span, wanted })
        bound = place.bound
        if (place.ended !== undefined) return chunk(place.ended === "AtEnd")
        if (loads++ >= this.bounds.heldLoadsMax || !(yield* this.learn(bound, reverse))) break
      }
      stopped = { after: bound }
      yield* this.fill()
      return chunk(true)
    })
    return { next, stopped: () => stopped }
  }

  /** Reads one small part in which something has changed; whether it is worth to look again. */
  private learn(
    bound: string | undefined,
    reverse: boolean
  ): Effect.Effect<boolean, StorageFailure> {
    const { blockRows: most, heldBytesMax: room } = this.bounds
    const rows = this.parts.rowsAhead(bound, reverse)
    if (rows > 2 * most || this.bytes >= room) return Effect.succeed(false)
    return this.load(bound, reverse, rows + spareRows)
  }

  /** Reads rows of the next unknown parts; false where they are being changed. */
  private load(
    bound: string | undefined,
    reverse: boolean,
    limit: number
  ): Effect.Effect<boolean, StorageFailure> {
    const run = this.parts.run(bound, reverse, limit)
    if (run === undefined) return Effect.succeed(true)
    // What begins to change from here on puts another part in the place of one of the run.
    for (const key of this.changing.keys()) if (isWithin(key, run)) return Effect.succeed(false)
    const { name, parse } = this.table
    const range = { limit, ...run.after === undefined ? {} : { after: run.after } }
    return Effect.map(this.records.range(name, range), (found) => {
      const entries = found.map(({ key, value }) => ({ key, row: parse(value) }))
      this.parts.take(run, entries, found.length < limit)
      return true
    })
  }

  /** Begins to read what is unknown, a piece at a time and with pauses, as far as there is room. */
  private fill(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.isFilling || this.isFull) return Effect.void
      this.isFilling = true
      const ended = Effect.sync(() => {
        this.isFilling = false
      })
      const filling = Effect.ensuring(Effect.ignore(this.filling()), ended)
      return Effect.asVoid(Effect.forkDetach(filling))
    })
  }

  private filling = Effect.fnUntraced({ self: this }, function*(
    this: RowCache
  ): Effect.fn.Return<void, StorageFailure> {
    const { fillPauseMs: pauseMs, fillRows: rows } = this.bounds
    while (!this.isFull) {
      let { changes } = this
      if (!(yield* this.records.isCurrent)) return
      const startedMs = performance.now()
      const isRead = yield* this.load(undefined, false, rows)
      yield* Effect.sleep(isRead ? Math.ceil(fillRest * (performance.now() - startedMs)) : pauseMs)
      // While more is changed than can be read, it waits.
      while (this.changes - changes > rows / 10) {
        changes = this.changes
        yield* Effect.sleep(pauseMs)
      }
    }
  })
}

/** The rows that a node holds of its tables. */
export class RowCaches {
  private readonly records: RecordsApi
  private readonly tables = new Map<string, RowCache | undefined>()

  constructor(records: RecordsApi) {
    this.records = records
  }

  /** undefined: of this table none are held. */
  of(table: TableSchema): RowCache | undefined {
    if (!this.tables.has(table.name)) {
      const columns = columnsOf(table)
      const held = columns === undefined ? undefined : new RowCache(this.records, table, columns)
      this.tables.set(table.name, held)
    }
    return this.tables.get(table.name)
  }
}
