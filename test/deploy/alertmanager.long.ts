/** A real Alertmanager, of Debian, reports an alert to a mailbox with the template for it. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { stringify } from "yaml"
import { asAdmin, expectStatus, send } from "../e2e/client.ts"
import { cleanUp, eventually, Running, type Service, start,
  temporaryFolder } from "../e2e/process.ts"
import { freePorts } from "../runtime/nats/servers.ts"
import { listAt, treeAt } from "./sources.ts"
import { toolOf } from "./tools.ts"

const withinMs = 120_000
const json = { "content-type": "application/json" }
const link = "http://prometheus.example:9090/graph?g0.expr=up&g0.tab=1"

let service: Service
let alertmanager: Running
let origin = ""

beforeAll(async () => {
  const binary = toolOf("prometheus-alertmanager")
  service = await start()
  const created = await send(service.url, "/mailboxes", {
    method: "POST",
    headers: { ...asAdmin, ...json },
    body: JSON.stringify({ name: "alerts", webhook: "alertmanager" })
  })
  expectStatus(created, 201)
  const folder = temporaryFolder()
  const [port = 0] = await freePorts(1)
  origin = `http://127.0.0.1:${port}`
  const route = { receiver: "restante", group_by: ["alertname"], group_wait: "0s" }
  const url = `${service.url}/mailboxes/alerts`
  writeFileSync(
    join(folder, "alertmanager.yaml"),
    stringify({
      route: { ...route, group_interval: "1s", repeat_interval: "24h" },
      receivers: [{ name: "restante", webhook_configs: [{ url, send_resolved: true }] }]
    })
  )
  alertmanager = new Running(binary, [
    `--config.file=${join(folder, "alertmanager.yaml")}`,
    `--storage.path=${join(folder, "data")}`,
    `--web.listen-address=127.0.0.1:${port}`,
    // It is alone.
    "--cluster.listen-address="
  ], {})
  await eventually(withinMs, `Alertmanager is ready: ${alertmanager.output}`, async () => {
    if (alertmanager.isOver) throw new Error(alertmanager.output)
    const answer = await fetch(`${origin}/-/ready`).catch(() => undefined)
    return answer?.ok === true ? true : undefined
  })
}, 2 * withinMs)

afterAll(cleanUp)

/** Reports the alert to Alertmanager as Prometheus does; `endsAt` when it is resolved. */
const report = async (more: Readonly<Record<string, string>>): Promise<void> => {
  const answer = await fetch(`${origin}/api/v2/alerts`, {
    method: "POST",
    headers: json,
    body: JSON.stringify([{
      labels: { alertname: "DiskFull", severity: "critical", job: "node", instance: "db-1" },
      annotations: { summary: "/ is 96 % full" },
      generatorURL: link,
      ...more
    }])
  })
  expect([answer.status, await answer.text()]).toEqual([200, ""])
}

/** The items in the mailbox, once there are so many. */
const items = (count: number) =>
  eventually(withinMs, `${count} notifications: ${alertmanager.output}`, async () => {
    const headers = { ...asAdmin, accept: "application/json" }
    const { text } = await send(service.url, "/mailboxes/alerts", { headers })
    const all = listAt(JSON.parse(text), "notification").map((one) => treeAt(one, "item"))
    return all.length >= count ? all : undefined
  })

it("fires and resolves an alert, which the template describes", async () => {
  await report({ startsAt: new Date().toISOString() })
  expect(await items(1)).toMatchObject([{
    description: "[firing] DiskFull / is 96 % full",
    priority: "5",
    tags: "firing,node,db-1",
    click: link
  }])
  await report({ endsAt: new Date().toISOString() })
  const [, resolved, ...more] = await items(2)
  expect(resolved).toMatchObject({
    description: "[resolved] DiskFull / is 96 % full",
    priority: "3",
    tags: "resolved,node,db-1",
    click: link
  })
  expect(more).toEqual([])
}, 3 * withinMs)
