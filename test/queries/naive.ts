/** Random rows, conditions and orders, and the expected answer by a scan of every row. */
import fc from "fast-check"
import type { Operator, Order, RowCondition } from "../../http/query-engine/condition.ts"
import type { Row } from "../../http/query-engine/table-fields.ts"
import { customersTable } from "../../http/resources/customers/customer-table.ts"

export interface Person {
  readonly id: string
  readonly row: Row
}

const letters = fc.constantFrom("a", "B", "b", "é", "\u{1F40E}", "z", "\uffee", "-")
const text = fc.array(letters, { maxLength: 3 }).map((all) => all.join(""))

/** Few different ages, so that many rows share one; or all of them. */
const age = fc.oneof(fc.constantFrom(0, 20, 21, 22, 150), fc.integer({ min: 0, max: 150 }))

export const people: fc.Arbitrary<ReadonlyArray<Person>> = fc.uniqueArray(
  fc.record({
    id: fc.string({
      unit: fc.constantFrom("a", "b", "Z", "0", "9", "-", "."),
      minLength: 1,
      maxLength: 4
    }),
    name: text,
    age,
    city: fc.option(text, { nil: undefined })
  }),
  { selector: ({ id }) => id, maxLength: 60 }
).map((all) =>
  all.map(({ age: years, city, id, name }) => ({
    id,
    row: { name, age: years, ...city === undefined ? {} : { city } }
  }))
)

const orderings: ReadonlyArray<Operator> = ["eq", "ne", "lt", "le", "gt", "ge"]
const searches: ReadonlyArray<Operator> = ["contains", "starts", "ends"]

const where: fc.Arbitrary<RowCondition> = fc.oneof(
  fc.record({
    _tag: fc.constant("where" as const),
    field: fc.constant("age"),
    op: fc.constantFrom(...orderings),
    value: fc.oneof(age, fc.integer({ min: -3, max: 200 })).map(String)
  }),
  fc.record({
    _tag: fc.constant("where" as const),
    field: fc.constantFrom("name", "city", "id"),
    op: fc.constantFrom(...orderings, ...searches),
    value: text
  })
)

export const condition: fc.Arbitrary<RowCondition> = fc.letrec<{ node: RowCondition }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    where,
    fc.record({
      _tag: fc.constantFrom("all" as const, "any" as const),
      of: fc.array(tie("node"), { maxLength: 3 })
    }),
    fc.record({ _tag: fc.constant("not" as const), of: tie("node") })
  )
})).node

export const order: fc.Arbitrary<Order> = fc.record({
  by: fc.constantFrom("id", "age", "name", "city"),
  descending: fc.boolean()
})

const fold = (one: string) => one.normalize("NFC").toLowerCase()
const bytes = (one: string, other: string) => Buffer.compare(Buffer.from(one), Buffer.from(other))

const holds = (actual: string | number, op: Operator, value: string): boolean => {
  const text = String(actual)
  const compared = typeof actual === "number" ? actual - Number(value) : bytes(text, value)
  const tests: Readonly<Record<Operator, () => boolean>> = {
    eq: () => compared === 0,
    ne: () => compared !== 0,
    lt: () => compared < 0,
    le: () => compared <= 0,
    gt: () => compared > 0,
    ge: () => compared >= 0,
    contains: () => fold(text).includes(fold(value)),
    starts: () => fold(text).startsWith(fold(value)),
    ends: () => fold(text).endsWith(fold(value))
  }
  return tests[op]()
}

const valueOf = ({ id, row }: Person, field: string): string | number =>
  field === customersTable.key ? id : row[field] ?? ""

export const fits = (person: Person, wanted: RowCondition): boolean => {
  switch (wanted._tag) {
    case "all":
      return wanted.of.every((one) => fits(person, one))
    case "any":
      return wanted.of.some((one) => fits(person, one))
    case "not":
      return !fits(person, wanted.of)
    case "where":
      return holds(valueOf(person, wanted.field), wanted.op, wanted.value)
  }
}

const compare = (by: string) => (one: Person, other: Person): number => {
  const [a, b] = [valueOf(one, by), valueOf(other, by)]
  const first = typeof a === "number" && typeof b === "number" ? a - b : bytes(String(a), String(b))
  return first || bytes(one.id, other.id)
}

/** The ids of all matching rows, in order. */
export const naive = (
  all: ReadonlyArray<Person>,
  wanted: RowCondition,
  { by, descending }: Order
): ReadonlyArray<string> => {
  const found = all.filter((person) => fits(person, wanted)).sort(compare(by))
  return (descending ? found.toReversed() : found).map(({ id }) => id)
}
