import { startService } from "/work/main/test/http/harness.ts"
import { sessionRoutes } from "/work/main/http/sessions/index.ts"
import { homeRoutes } from "/work/main/http/home/index.ts"
import { contentRoutes } from "/work/main/http/content/index.ts"
import { accountRoutes } from "/work/main/http/accounts/index.ts"
import { chromium } from "playwright-core"
const s = await startService((o) => [...homeRoutes(o), ...sessionRoutes(o), ...contentRoutes(o), ...accountRoutes(o)])
const b = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] })
const ctx = await b.newContext({ viewport: { width: 390, height: 844 }, javaScriptEnabled: false, httpCredentials: {username:"admin", password: "the-admins-token-of-these-tests"} })
const p = await ctx.newPage()
const shot = (n: string) => p.screenshot({ path: `/tmp/shots/${n}.png` })
await p.goto(s.base + "/"); await shot("home")
await p.click("text=cross the Bridge of Death"); await shot("bridge")
await p.click("button"); await shot("name"); console.log(p.url())
await p.fill("input[name=answer]", "Sir Robin"); await p.click("button")
await p.fill("input[name=answer]", "The Grail"); await p.click("button"); await shot("hard")
await p.fill("input[name=answer]", "Nineveh"); await p.click("button"); await shot("crossed")
console.log(await p.textContent("main"))
await p.goto(s.base + "/sessions"); await shot("sessions")
await p.goto(s.base + "/accounts"); await shot("accounts")
await p.fill("input[name=name]", "bob"); await p.click("button"); await shot("bob"); console.log(await p.title())
await p.goto(s.base + "/questions/name_question"); await p.fill("input[name=name]", "Sir Robin"); await p.click("button"); await shot("q2")
await p.fill("input[name=quest]", "G & é"); await p.click("button"); await p.fill("input[name=air_speed]", "Rome"); await p.click("button"); await shot("cry"); console.log(p.url())
await b.close(); await s.close()
