/** Records that a later version wrote: fields that this one does not know, and another format. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { serviceFormat } from "../../actors/index.ts"
import { type Area, customer, startArea } from "./customers-harness.ts"

let area: Area
beforeAll(async () => void (area = await startArea()))
afterAll(() => area.close())

const read = (id: string) => area.run(area.service.records.get("customers", id))

const write = (key: string, value: string) =>
  area.run(area.service.records.write([{ table: "customers", key, value }]))

it("keeps the fields of a later version when a customer is replaced", async () => {
  const later = { phone: "unlisted", tags: ["a", "b"] }
  for (const id of ["put", "load"]) {
    expect((await area.put(id, customer("Arthur", 40))).status).toBe(201)
    await write(id, JSON.stringify({ ...JSON.parse(await read(id) ?? ""), ...later }))
  }
  expect((await area.put("put", customer("Bors", 41))).status).toBe(200)
  const file = "id,name,age\nload,Bors,41\nload,Bors,42\n"
  const sending = { basic: area.clerk, type: "text/csv", body: file }
  expect((await area.send("PUT", "/customers", sending)).status).toBeLessThan(300)
  expect(JSON.parse(await read("put") ?? "")).toEqual({ name: "Bors", age: 41, ...later })
  expect(JSON.parse(await read("load") ?? "")).toEqual({ name: "Bors", age: 42, ...later })
  expect((await area.send("GET", "/customers/put")).text).not.toContain("unlisted")
  expect(await area.idsOf("/customers?agemin=41")).toEqual(["load", "put"])
})

it("refuses a record of a later format, and changes nothing", async () => {
  const value = `@${serviceFormat + 1} a form that nobody knows`
  await write("later", value)
  const answers = [
    await area.send("GET", "/customers/later"),
    await area.send("GET", "/customers"),
    await area.put("later", customer("Cador", 50)),
    await area.send("DELETE", "/customers/later", { basic: area.clerk })
  ]
  expect(answers.map(({ status }) => status)).toEqual([503, 503, 503, 503])
  expect(await read("put")).toContain("Bors")
})
