/**
 * What was read of tables that have not changed since, as it was answered: the same objects, so
 * that who decodes them can keep that too. A read through the database and its binding costs half
 * a microsecond for each row, however warm the database is.
 */
import { cachedAnswerCharsMax, cachedCharsMax } from "../../limits.ts"
import type { RecordEntry, RecordRange, RecordsInMemory } from "../../ports/index.ts"

interface Answer {
  readonly value: object
  readonly chars: number
  readonly table: string
}

const charsOf = (texts: ReadonlyArray<string | undefined>): number =>
  texts.reduce((sum, text) => sum + (text?.length ?? 0), 0)

const charsOfEntries = (entries: ReadonlyArray<RecordEntry>): number =>
  entries.reduce((sum, { key, value }) => sum + key.length + value.length, 0)

const nameOf = ({ after, limit, prefix, reverse }: RecordRange): string =>
  `${limit}\u0000${reverse === true ? 1 : 0}\u0000${prefix ?? ""}\u0000${
    after === undefined ? 0 : `1${after}`
  }`

export class ReadCache implements RecordsInMemory {
  private readonly held: RecordsInMemory
  private answers = new Map<string, Answer>()
  /** The names of the answers from each table. */
  private tables = new Map<string, Set<string>>()
  /** How many changes of each table are under way. */
  private readonly unsure = new Map<string, number>()
  private chars = 0

  constructor(held: RecordsInMemory) {
    this.held = held
  }

  readonly get: RecordsInMemory["get"] = (table, key) => this.held.get(table, key)

  readonly getMany: RecordsInMemory["getMany"] = (table, keys) =>
    this.answer(
      table,
      `${table}\u0000${keys.length}\u0000${keys.join("\u0000")}`,
      () => this.held.getMany(table, keys),
      charsOf
    )

  readonly range: RecordsInMemory["range"] = (table, range) =>
    this.answer(
      table,
      `${table}\u0000range\u0000${nameOf(range)}`,
      () => this.held.range(table, range),
      charsOfEntries
    )

  readonly keys: RecordsInMemory["keys"] = (table, ranges) =>
    this.answer(
      table,
      `${table}\u0000keys\u0000${ranges.map(nameOf).join("\u0001")}`,
      () => this.held.keys(table, ranges),
      (found) => found.reduce((sum, keys) => sum + charsOf(keys), 0)
    )

  /** Some readers may see a change of a table from now on; nothing of it is kept meanwhile. */
  changing(table: string): void {
    this.unsure.set(table, (this.unsure.get(table) ?? 0) + 1)
    this.forget(table)
  }

  /** Everybody sees that change now. */
  changed(table: string): void {
    const others = (this.unsure.get(table) ?? 1) - 1
    if (others === 0) this.unsure.delete(table)
    else this.unsure.set(table, others)
  }

  private forget(table: string): void {
    const names = this.tables.get(table)
    if (names === undefined) return
    this.tables.delete(table)
    for (const name of names) {
      this.chars -= this.answers.get(name)?.chars ?? 0
      this.answers.delete(name)
    }
  }

  clear(): void {
    this.answers.clear()
    this.tables.clear()
    this.chars = 0
  }

  private answer<A extends object>(
    table: string,
    name: string,
    read: () => A | Promise<A>,
    measure: (value: A) => number
  ): A | Promise<A> {
    const known = this.answers.get(name)
    if (known !== undefined) {
      // The least lately used stand first.
      this.answers.delete(name)
      this.answers.set(name, known)
      // The name tells what kind of question it answers.
      return known.value as A
    }
    const value = read()
    if (!(value instanceof Promise) && !this.unsure.has(table)) {
      this.keep(table, name, value, measure(value) + name.length)
    }
    return value
  }

  private keep(table: string, name: string, value: object, chars: number): void {
    if (chars > cachedAnswerCharsMax) return
    this.answers.set(name, { value, chars, table })
    this.chars += chars
    const names = this.tables.get(table) ?? new Set<string>()
    this.tables.set(table, names.add(name))
    for (const [oldest, answer] of this.answers) {
      if (this.chars <= cachedCharsMax) return
      this.answers.delete(oldest)
      this.tables.get(answer.table)?.delete(oldest)
      this.chars -= answer.chars
    }
  }
}
