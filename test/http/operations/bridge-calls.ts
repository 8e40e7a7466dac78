/** The bridge, its sessions, and its questions without a session. */
import { expect } from "vitest"
import { type Step } from "../operation-requests.ts"
import { located, type OperationCalls } from "./calls.ts"

/** A question of a session of its own, those before it answered. */
const fresh = async ({ send, service }: OperationCalls, ...before: ReadonlyArray<string>) => {
  const begun = await send("POST", "/sessions", { body: "<answer continue=\"true\"/>" })
  const path = located(service, [begun])
  for (const step of before) {
    await send("PUT", `${path}/${step}`, { body: "<answer>Arthur</answer>" })
  }
  return path
}

/** A session that is over takes no other answer: each is one of its own. */
const hardQuestion = async (calls: OperationCalls, over: string): Promise<void> => {
  const { asks, send } = calls
  const own = async () => `${await fresh(calls, "name", "quest")}/hard_question`
  const text = "What do you mean? An African or European swallow?"
  const key = "/sessions/{session}/hard_question"
  const right = {
    path: own,
    basic: undefined,
    root: "answer",
    json: () => ({ text }),
    form: () => ({ answer: text }),
    besides: ["unknown"]
  } as const satisfies Step
  await asks(`PUT ${key}`, right)
  await asks(`POST ${key}`, right)
  const path = `${over}/hard_question`
  for (const accept of ["application/xml", "application/json", "text/html", "text/plain"]) {
    const wrong = await send("PUT", await own(), { accept, body: "<answer>No idea</answer>" })
    expect(wrong.status).toBe(406)
  }
  await send("PUT", path, { body: `<answer>${text}</answer>` })
  expect((await send("PUT", path, { body: "<answer/>" })).status).toBe(405)
  await asks(`GET ${key}`, { path, basic: undefined })
}

/** The stateless variant. */
const questions = async ({ asks, reads, send }: OperationCalls): Promise<void> => {
  await reads("/questions/name_question")
  const [quest, hard] = ["quest_question?name=Robin", "hard_question?name=Robin&quest=Grail"]
  const nobody = { basic: undefined }
  await asks("GET /questions/quest_question", { path: `/questions/${quest}`, ...nobody })
  await asks("GET /questions/hard_question", { path: `/questions/${hard}`, ...nobody })
  expect((await send("GET", `/questions/${hard}&air_speed=Assur`)).status).toBe(200)
  for (const accept of ["application/xml", "application/json"]) {
    const wrong = await send("GET", `/questions/${hard}&air_speed=Rome`, { accept })
    expect(wrong.status).toBe(406)
  }
}

/** The bridge, sessions and questions. */
export const askBridge = async (calls: OperationCalls): Promise<void> => {
  const { asks, reads, send, service } = calls
  await reads("/cross_bridge")
  const nobody = { basic: undefined }
  const begun = await asks("POST /sessions", {
    path: "/sessions",
    ...nobody,
    root: "answer",
    json: () => ({ continue: "true" }),
    form: () => ({ answer: "yes", continue: "true" })
  })
  await asks("GET /sessions", { path: "/sessions?limit=1000", ...nobody })
  const path = located(service, begun)
  await asks("GET /sessions/{session}", { path, ...nobody })
  const answers = [["name", "Arthur", []], ["quest", "The Grail", ["name"]]] as const
  for (const [step, text, before] of answers) {
    const answer = {
      path: `${path}/${step}`,
      ...nobody,
      root: "answer",
      json: () => ({ text }),
      form: () => ({ answer: text })
    }
    const first = async () => `${await fresh(calls, ...before)}/${step}`
    await asks(`PUT /sessions/{session}/${step}`, { ...answer, path: first, besides: ["unknown"] })
    await send("PUT", answer.path, { body: `<answer>${text}</answer>` })
    await asks(`PUT /sessions/{session}/${step}`, { ...answer, besides: ["unknown"] })
    await asks(`POST /sessions/{session}/${step}`, answer)
    await asks(`GET /sessions/{session}/${step}`, { path: `${path}/${step}`, ...nobody })
  }
  await hardQuestion(calls, path)
  await asks("DELETE /sessions/{session}", { path, ...nobody })
  await questions(calls)
}
