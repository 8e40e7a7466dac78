/**
 * An honest client in a process of its own, so that its waits are those of the service and not of
 * the test. Deposits, lists and reads the memory of the service, again and again, and sends a
 * `Report` after each turn. It forgets its waits at the message `measure`, and ends at `end`.
 *
 * `node honest-client.mjs <address of the service> <path of the mailbox> <its password>`
 */
const [base, path, password] = process.argv.slice(2)

const turnMs = 20

const memoryPattern = /^restante_process_resident_memory_bytes (.+)$/m

/** Its network; the service trusts the address in this field. */
const from = { "x-forwarded-for": "198.51.100.9" }

const reader = {
  ...from,
  authorization: `Basic ${Buffer.from(`reader:${password}`).toString("base64")}`
}

const waitsMs = []
let requests = 0
let peakBytes = 0
let failure
const ending = new AbortController()

process.on("message", (message) => {
  if (message === "measure") waitsMs.length = 0
  else ending.abort()
})

const request = async (target, status, options) => {
  const response = await fetch(`${base}${target}`, options)
  const text = await response.text()
  if (response.status === status) return text
  throw new Error(`${response.status} instead of ${status} at ${target}: ${text.slice(0, 1000)}`)
}

const timed = async (...all) => {
  const startedMs = performance.now()
  await request(...all)
  waitsMs.push(performance.now() - startedMs)
  requests++
}

const deposit = (n) => ({
  method: "POST",
  headers: { ...from, "content-type": "application/xml" },
  body: `<notification><item><description>honest-${n}</description>` +
    `<url>http://sender.test/honest-${n}</url></item></notification>`
})

const turn = async (n) => {
  await timed(path, 202, deposit(n))
  await timed(`${path}?limit=20`, 200, { headers: reader })
  const [, bytes] = memoryPattern.exec(await request("/metrics", 200, {})) ?? []
  peakBytes = Math.max(peakBytes, Number(bytes))
}

const report = () => {
  const sorted = waitsMs.toSorted((one, other) => one - other)
  const p99Ms = sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0
  process.send({ isOver: true, failure, requests, p99Ms, peakBytes })
}

try {
  for (let n = 0; !ending.signal.aborted; n++) {
    await turn(n)
    process.send({ isOver: false, requests })
    await new Promise((resolve) => setTimeout(resolve, turnMs))
  }
} catch (error) {
  failure = String(error)
}
report()
process.disconnect()
