/** `restante load` and `restante query` as they are built. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { endCommands, type Environment, type Ran, run } from "../deploy/cli-harness.ts"
import { type Service, start, temporaryFolder } from "../e2e/process.ts"

let service: Service
let folder: string

const restante = (args: ReadonlyArray<string>, env: Environment = {}, input = ""): Promise<Ran> =>
  run(args, { BASE_URL: service.url, ...env }, input).ended

const file = (name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

beforeAll(async () => {
  service = await start()
  folder = temporaryFolder()
})
afterAll(endCommands)

describe("restante load customers", () => {
  it("loads CSV, JSON lines and XML by the file's name", async () => {
    const csv = await restante([
      "load",
      "customers",
      file("a.csv", "id,name,age\na,Ann,30\nb,Bo,20\n")
    ])
    expect([csv.status, csv.stdout]).toEqual([0, "2 rows: 2 new, 0 replaced, 0 skipped\n"])
    const lines =
      "{\"id\":\"b\",\"name\":\"Bob\",\"age\":21}\n{\"id\":\"c\",\"name\":\"Cy\",\"age\":22}\n"
    const jsonl = await restante(["load", "customers", file("b.jsonl", lines), "--json"])
    expect(JSON.parse(jsonl.stdout)).toMatchObject({
      rows: 2,
      created: 1,
      replaced: 1,
      problems: []
    })
    const document =
      "<customers><customer id=\"d\"><name>Di</name><age>1</age></customer></customers>"
    const xml = await restante(["load", "customers", "-", "--format", "xml"], {}, document)
    expect([xml.status, xml.stdout]).toEqual([0, "1 row: 1 new, 0 replaced, 0 skipped\n"])
  })

  it("loads nothing of a file with a fault, unless it is to continue", async () => {
    const bad = file("bad.csv", "id,name,age\nx,X,1\ny,Y,old\nz,Z,3\n")
    const refused = await restante(["load", "customers", bad])
    expect([refused.status, refused.stdout]).toEqual([1, ""])
    expect(refused.stderr).toContain("row 2: age must be a whole number")
    expect((await restante(["query", "customers", "--json"])).stdout).not.toContain("/x\"")
    const passed = await restante(["load", "customers", bad, "--continue"])
    expect([passed.status, passed.stdout]).toEqual([
      0,
      "3 rows: 2 new, 0 replaced, 1 skipped\n"
    ])
    expect(passed.stderr).toContain("row 2: age must be a whole number")
  })

  it("reports the fault of the command line, the file, or the token", async () => {
    expect((await restante(["load", "customers", file("people", "")])).status).toBe(2)
    const missing = await restante(["load", "customers", join(folder, "none.csv")])
    expect([missing.status, missing.stderr]).toEqual([1, expect.stringContaining("cannot be read")])
    const token = { RESTANTE_TOKEN: "wrong" }
    const refused = await restante(["load", "customers", file("c.csv", "id,name,age\n")], token)
    expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining("401")])
    const away = { BASE_URL: "http://127.0.0.1:1" }
    expect((await restante(["load", "customers", file("d.csv", "")], away)).status).toBe(75)
  })
})

describe("restante query", () => {
  it("prints a table, or JSON lines, without a token", async () => {
    const nobody = { RESTANTE_TOKEN: "" }
    const args = ["query", "customers", "--agemin", "21", "--return", "name age"]
    const table = await restante(args, nobody)
    expect([table.status, table.stdout]).toEqual([
      0,
      "ID  NAME  AGE\na   Ann   30\nb   Bob   21\nc   Cy    22\n"
    ])
    const json = await restante([...args, "--json", "--limit", "1"], nobody)
    expect(json.stdout.trimEnd().split("\n").map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({ name: "Ann", age: "30" })
    ])
    expect((await restante(["query", "quotes"], nobody)).stdout).toBe("SYMBOL\n")
    expect((await restante(["query", "customers", "--return", "shoe"], nobody)).status).toBe(1)
    expect((await restante(["query", "orders"], nobody)).status).toBe(2)
  })
})
