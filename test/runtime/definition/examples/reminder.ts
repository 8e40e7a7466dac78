import { become, defineActor, Schema, stay } from "../../../../runtime/main.ts"

const fields = { text: Schema.String, atMs: Schema.Int }

const remind = (text: string, atMs: number) =>
  become({ _tag: "Waiting", text, atMs }).setTimer(atMs).reply("It will ring")

export const reminder = defineActor("reminder", {
  state: { Absent: {}, Waiting: fields },
  messages: { Remind: fields, Due: {}, Rung: { atMs: Schema.Int } },
  actions: { Ring: fields },
  internal: ["Rung"],
  timer: "Due",
  initial: { _tag: "Absent" },
  table: {
    Absent: {
      Remind: (_, { atMs, text }) => remind(text, atMs),
      Due: () => stay(),
      Rung: () => stay()
    },
    Waiting: {
      Remind: (_, { atMs, text }) => remind(text, atMs),
      Due: (waiting) => stay().attempt({ ...waiting, _tag: "Ring" }, 30_000),
      Rung: ({ atMs }, rung) => rung.atMs === atMs ? stay().removeActor() : stay()
    }
  },
  perform: {
    Ring: async ({ atMs, text }, { self, signal }) => {
      const url = `${process.env["BELL_URL"]}/${self.id}`
      const answer = await fetch(url, { method: "POST", body: text, signal })
      if (!answer.ok) throw new Error(`the bell answered ${answer.status}`)
      return { _tag: "Rung", atMs }
    }
  }
})
