// The list of runs behind the table. A row that is shown changes in its place; what is new waits in
// `fresh` while somebody reads, so that nothing moves under the pointer.
import { get, Problem, taskPath } from "./api";
import { live } from "./live.svelte";
import type { Happening, Page, Progress, State, Task } from "./types";

const PAGE = 60;
const PACE = 400;
const FEW = 6;

export interface Filters {
  state: string[];
  session: string;
  kind: string;
  q: string;
}

export class RunList {
  items = $state.raw<Task[]>([]);
  fresh = $state.raw<Task[]>([]);
  error = $state.raw<Problem | null>(null);
  loaded = $state(false);
  more = $state<string | null>(null);
  /** Somebody reads: nothing may move. */
  held = false;

  private filters: Filters = { state: [], session: "", kind: "", q: "" };
  private turn = 0;
  private dirty = new Set<string>();
  private comers = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  show(filters: Filters): void {
    this.filters = filters;
    this.turn += 1;
    this.dirty.clear();
    this.comers = false;
    void this.load();
  }

  async load(): Promise<void> {
    const turn = this.turn;
    try {
      const page = await this.page(null);
      if (turn !== this.turn) return;
      this.items = page.items;
      this.more = page.next ?? null;
      this.fresh = [];
      this.error = null;
      this.loaded = true;
    } catch (error) {
      if (turn === this.turn && error instanceof Problem) this.error = error;
    }
  }

  async older(): Promise<void> {
    const turn = this.turn;
    if (!this.more) return;
    try {
      const page = await this.page(this.more);
      if (turn !== this.turn) return;
      const known = new Set(this.items.map((task) => task.id));
      this.items = [...this.items, ...page.items.filter((task) => !known.has(task.id))];
      this.more = page.next ?? null;
    } catch (error) {
      if (turn === this.turn && error instanceof Problem) this.error = error;
    }
  }

  /** The person asked for what is new. */
  release(): void {
    const kept = this.items.filter((task) => this.fits(task));
    this.items = [...this.fresh, ...kept];
    this.fresh = [];
  }

  /** False for a row that stays only because somebody may be reading it. */
  fits(task: Task): boolean {
    const { state } = this.filters;
    return !state.length || state.includes(task.state);
  }

  attach(): () => void {
    const off = live.listen((happening) => this.happened(happening));
    return () => {
      off();
      clearTimeout(this.timer);
      this.turn += 1;
    };
  }

  private page(cursor: string | null): Promise<Page<Task>> {
    return get<Page<Task>>("/v1/tasks", { ...this.filters, cursor, limit: PAGE });
  }

  private happened(happening: Happening): void {
    const shown = this.items.some((task) => task.id === happening.task);
    if (shown && happening.kind === "progress") {
      this.replace(happening.task, (task) => ({
        ...task,
        progress: (happening.data["progress"] as unknown as Progress | undefined) ?? task.progress,
      }));
      return;
    }
    if (shown || this.fresh.some((task) => task.id === happening.task)) this.dirty.add(happening.task);
    else this.comers = true;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      void this.refresh();
    }, PACE);
  }

  /** After a loss of the connection: what is shown stays in its place, and becomes true again. */
  catchUp(): void {
    for (const task of this.items) if (isActive(task.state)) this.dirty.add(task.id);
    this.comers = true;
    void this.refresh();
  }

  private async refresh(): Promise<void> {
    const turn = this.turn;
    let changed = [...this.dirty];
    const whole = this.comers || changed.length > FEW;
    this.dirty.clear();
    this.comers = false;
    try {
      if (whole) {
        const { items } = await this.page(null);
        if (turn !== this.turn) return;
        this.merge(items, true);
        const seen = new Set(items.map((task) => task.id));
        changed = changed.filter((id) => !seen.has(id));
      }
      for (let at = 0; at < changed.length && turn === this.turn; at += FEW) {
        const some = changed.slice(at, at + FEW).map((id) => get<Task>(taskPath(id)));
        const found = (await Promise.allSettled(some)).flatMap((end) => (end.status === "fulfilled" ? [end.value] : []));
        if (turn === this.turn) this.merge(found, false);
      }
    } catch (error) {
      // The stream tells of a loss; after its return all is caught up with.
      if (!(error instanceof Problem)) throw error;
    }
  }

  private merge(found: Task[], comers: boolean): void {
    const byId = new Map(found.map((task) => [task.id, task]));
    this.items = this.items.map((task) => byId.get(task.id) ?? task);
    this.fresh = this.fresh.map((task) => byId.get(task.id) ?? task);
    if (!comers) return;
    const known = new Set([...this.items, ...this.fresh].map((task) => task.id));
    const newest = this.items[0]?.created_at ?? "";
    const comes = found.filter((task) => !known.has(task.id) && (!newest || task.created_at >= newest));
    const joins = found.filter((task) => !known.has(task.id) && !comes.includes(task));
    if (this.held) this.fresh = [...comes, ...joins, ...this.fresh];
    else if (joins.length) void this.load();
    else this.items = [...comes, ...this.items];
  }

  private replace(id: string, change: (task: Task) => Task): void {
    this.items = this.items.map((task) => (task.id === id ? change(task) : task));
  }
}

export const isActive = (state: State): boolean =>
  state === "running" || state === "queued" || state === "input_required";
