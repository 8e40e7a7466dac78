/** Many requests in one packet of a client that reads no answer take bounded memory. */
import { afterAll, expect, it } from "vitest"
import { turnBytesMax } from "../../http/limits.ts"
import { metricValue, send } from "../e2e/client.ts"
import { cleanUp, start } from "../e2e/process.ts"
import { head, openRaw, statusesOf } from "../e2e/raw.ts"

const requests = 1_000

afterAll(cleanUp)

it("ends a connection with many large answers under way, and serves others", async () => {
  const service = await start()
  const { length } = (await send(service.url, "/openapi.json")).text
  const before = await metricValue(service.url, "restante_process_resident_memory_bytes")
  const { closed, received, socket } = await openRaw(service.port)
  socket.write(head("GET /openapi.json HTTP/1.1", "Host: a").repeat(requests))
  await closed
  // The answers of one turn, and the one that waits.
  expect(statusesOf(received()).length).toBeLessThanOrEqual(Math.ceil(turnBytesMax / length) + 2)
  const after = await metricValue(service.url, "restante_process_resident_memory_bytes")
  expect(after - before).toBeLessThan(requests * length / 4)
  expect((await send(service.url, "/livez")).status).toBe(200)
  expect((await service.stop()).code).toBe(0)
}, 300_000)
