/** Files of customers in chunks of any size, also cut within one character. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { element, writeDocument } from "../../http/formats/xml/index.ts"
import { rowCharsMax } from "../../http/limits.ts"
import { CustomerFileParser, FileBroken,
  type FileFormat } from "../../http/resources/customers/customer-files.ts"
import type { CustomerInput } from "../../http/resources/customers/customer-input.ts"
import { parser } from "../http/document-parser.ts"

const text = fc.string({
  unit: fc.constantFrom("a", "B", " ", ",", "\"", "\n", "\r\n", "é", "\u{1F40E}", "<", "&", "'"),
  minLength: 1,
  maxLength: 8
})

const rows = fc.array(fc.record({ id: text, name: text, age: text }), { maxLength: 12 })

const cell = (value: string) => `"${value.replaceAll("\"", "\"\"")}"`

const written: Readonly<Record<FileFormat, (all: ReadonlyArray<CustomerInput>) => string>> = {
  csv: (all) =>
    `id,name,age\r\n${
      all.map(({ age, id, name }) => [id, name, age].map((one) => cell(one ?? "")).join(",")).join(
        "\n"
      )
    }`,
  jsonl: (all) => all.map((row) => JSON.stringify(row)).join("\n"),
  xml: (all) =>
    writeDocument(
      element(
        "customers",
        {},
        ...all.map(({ age, id, name }) =>
          element("customer", { id }, element("name", {}, name), element("age", {}, age))
        )
      )
    ),
  json: (all) => JSON.stringify(all)
}

const read = (
  format: FileFormat,
  pieces: ReadonlyArray<Uint8Array>
): Array<CustomerInput | string> => {
  const found: Array<CustomerInput | string> = []
  const reader = new CustomerFileParser(parser, format, (row) => {
    found.push(row.ok ? { ...row.value } : row.fault)
  })
  for (const piece of pieces) reader.write(piece)
  reader.end()
  return found
}

const cut = (bytes: Buffer, at: ReadonlyArray<number>): ReadonlyArray<Buffer> => {
  const places = [0, ...at.map((one) => one % (bytes.length + 1)), bytes.length].sort((a, b) =>
    a - b
  )
  return places.slice(1).map((end, index) => bytes.subarray(places[index] ?? 0, end))
}

describe.each(["csv", "jsonl", "xml", "json"] as const)("%s", (format) => {
  it("gives the same result for any chunks", () => {
    fc.assert(fc.property(rows, fc.array(fc.nat(), { maxLength: 20 }), (all, places) => {
      const bytes = Buffer.from(written[format](all))
      expect(read(format, cut(bytes, places))).toEqual(read(format, [bytes]))
      expect(read(format, cut(bytes, places))).toEqual(all)
    }))
  })

  it("rejects any other bytes with a FileBroken, and never fails otherwise", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 60 }), rows, fc.nat(), (noise, all, at) => {
      const bytes = Buffer.from(written[format](all))
      const place = at % (bytes.length + 1)
      const pieces = [bytes.subarray(0, place), noise, bytes.subarray(place)]
      try {
        read(format, pieces)
      } catch (error) {
        expect(error).toBeInstanceOf(FileBroken)
      }
    }))
  })
})

it.each(
  [
    ["csv", "id,name,age\na,\""],
    ["csv", "id,name,age\na,"],
    ["jsonl", "{\"id\":\""],
    ["xml", "<customers><customer><name>"],
    ["xml", "<customers><customer><!-- "]
  ] as const
)("holds no more of a row of %s that begins %s than it may have", (format, begin) => {
  const reader = new CustomerFileParser(parser, format, () => {})
  reader.write(Buffer.from(begin))
  const piece = Buffer.alloc(10_000, "x")
  let pieces = 0
  expect(() => {
    for (; pieces < 100; pieces++) reader.write(piece)
  }).toThrow(FileBroken)
  expect(pieces * piece.length).toBeLessThanOrEqual(rowCharsMax + 2 * piece.length)
})
