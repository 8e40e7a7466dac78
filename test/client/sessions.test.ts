/** Sessions and queries through the client, with the running service. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { type Client, Conflict, Gone, ProblemError, Unprocessable } from "../../client/index.ts"
import { all, type Here, rejection, startHere } from "./services.ts"
import { startCutting } from "./cutting.ts"

let here: Here
let url = ""
let admin: Client
beforeAll(async () => {
  here = await startHere()
  url = here.url
  admin = here.admin
})
afterAll(() => here.close())

const swallow = "African or European?"

it("walks from question to question to the other side", async () => {
  const session = await admin.beginSession()
  const questions: Array<string> = []
  const end = await session.walk((question) => {
    questions.push(question)
    return ["Arthur", "I seek the grail", swallow][questions.length - 1] ?? ""
  })
  expect(questions).toEqual([
    "What is your name?",
    "What is your quest?",
    "What is the air-speed velocity of an unladen swallow?"
  ])
  expect(end).toMatchObject({ over: true, outcome: "crossed", says: "Right. Off you go." })
  expect(await admin.session(session.href).state()).toEqual(end)
  expect(await rejection(session.answer("again", { step: "name" }))).toMatchObject({ status: 405 })
  expect(await session.answered("name")).toBe("Arthur")
})

it("is cast into the gorge by a wrong answer", async () => {
  const session = await admin.beginSession()
  await session.answer("Sir Robin")
  expect(await session.answer("the grail")).toMatchObject({ step: "hard_question", over: false })
  const end = await session.answer("I don't know that")
  expect(end).toMatchObject({ over: true, outcome: "cast", step: undefined })
  expect(await session.state()).toEqual(end)
  const listed = await all(admin.sessions())
  expect(listed.map(({ status }) => status).sort()).toEqual(["cast", "crossed"])
})

it("answers with a URI, changes an answer, and preserves the order of the questions", async () => {
  const session = await admin.beginSession()
  const { href } = await admin.publish("Galahad", { contentType: "text/plain" })
  expect(await rejection(session.answer("x", { step: "quest" }))).toBeInstanceOf(Conflict)
  expect(await session.answer({ href })).toMatchObject({ step: "quest" })
  expect(await session.answered("name")).toEqual({ href })
  await session.answer("the grail")
  expect((await session.state()).says).toContain("colour")
  expect((await session.answer("Arthur", { step: "name" })).says).toContain("swallow")
  const unreadable = await rejection(session.answer({ href: `${href}x` }, { step: "name" }))
  expect(unreadable).toBeInstanceOf(Unprocessable)
  await session.delete()
  expect(await rejection(session.state())).toBeInstanceOf(Gone)
})

it("reports the outcome when the response to the last answer was lost", async () => {
  for (const [text, outcome] of [[swallow, "crossed"], ["blue", "cast"]] as const) {
    const session = await admin.beginSession()
    await session.answer("Arthur")
    await session.answer("the grail")
    // Forwards the request, and nothing of its first response.
    const port = Number(new URL(url).port)
    const cutting = await startCutting(() => port, (n) => n === 0 ? 0 : Infinity)
    const cut = here.asAdmin(cutting.url).session(session.href)
    expect(await cut.answer(text, { step: "hard_question" })).toMatchObject({ outcome })
    expect(cutting.connections()).toBeGreaterThan(1)
    cutting.close()
  }
})

it("preserves the digits of quotes", async () => {
  const { queries } = admin
  const set = await queries.setQuote("ACME", { amount: "12.500", currency: "USD" })
  expect(set).toMatchObject({ symbol: "ACME", amount: "12.500", currency: "USD" })
  expect(await queries.quote("ACME")).toEqual(set)
  expect(await all(queries.quotes())).toEqual([set])
  await queries.removeQuote("ACME")
  expect(await queries.quote("ACME")).toBeUndefined()
  expect(await queries.quote("NONE")).toBeUndefined()
})

it("finds customers by age and by query, over pages", async () => {
  const { queries } = admin
  const ages = [19, 30, 41, 52, 63, 74]
  for (const [n, age] of ages.entries()) {
    await queries.setCustomer(`c${n}`, { name: `Sir ${n}`, age, city: n % 2 === 0 ? "York" : "" })
  }
  const grown = await all(queries.customers({ agemin: 41, fields: ["id", "age"], pageSize: 2 }))
  expect(grown.map(({ age, id, name }) => [id, age, name])).toEqual([
    ["c2", 41, undefined],
    ["c3", 52, undefined],
    ["c4", 63, undefined],
    ["c5", 74, undefined]
  ])
  const query = {
    on: "customers",
    where: [
      { any: [{ field: "age", op: "lt", value: 20 }, { field: "age", op: "gt", value: 50 }] },
      { not: { field: "city", op: "contains", value: "ork" } }
    ],
    order: { by: "age", direction: "desc" }
  } as const
  const { edit, href } = await queries.create(query)
  const found = () => all(queries.customers({ query: href, pageSize: 1 }))
  expect((await found()).map(({ age }) => age)).toEqual([74, 52])
  await queries.replace(edit, { ...query, limit: 1 })
  expect((await found()).map(({ age }) => age)).toEqual([74])
  await queries.remove(edit)
  await queries.removeCustomer("c0")
  expect(await rejection(found())).toBeInstanceOf(ProblemError)
})
