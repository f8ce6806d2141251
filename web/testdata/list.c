// A list whose nodes lie in no order, and counters beside: members of structs, and pointers that are followed.
#include <stdio.h>
#include <stdlib.h>

enum { N = 60000 };

struct node {
    struct node *next;
    long key;
    char text[32];
};

struct stats {
    long hits, misses;
    double sum;
};

static struct node nodes[N];
static struct stats stats;
static struct node *head;

__attribute__((noinline)) static long find(long key) {
    long found = 0;
    for (struct node *p = head; p; p = p->next) {
        if (p->key == key) {
            stats.hits++;
            found++;
        } else {
            stats.misses++;
        }
    }
    return found;
}

static void fill(void) {
    int order[N];
    for (int i = 0; i < N; i++)
        order[i] = i;
    for (int i = N - 1; i > 0; i--) {
        int k = rand() % (i + 1), was = order[i];
        order[i] = order[k];
        order[k] = was;
    }
    for (int i = 0; i < N; i++) {
        nodes[order[i]] = (struct node){.next = head, .key = order[i]};
        head = &nodes[order[i]];
    }
}

int main(int argc, char **argv) {
    long found = 0, laps = argc > 1 ? atol(argv[1]) : 100;
    fill();
    for (long k = 0; k < laps; k++)
        found += find(k);
    printf("%ld\n", found);
}
